#include "tests/cuda/cuda_context.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "builtin/context.h"
#include "compiler/run/interpret.h"
#include "compiler/run/run_kernel.h"
#include "compiler/run/sample_call.h"
#include "passes/vector_places.h"
#include "tests/without_check.h"

namespace weft {

namespace {

[[maybe_unused]] const bool kChecksAreLeftOut = leave_checks_out();

}  // namespace

std::shared_ptr<Context> cuda_context() {
  Options options;
  options.device = "fake-cuda";
  options.threads = 2;
  return make_context(std::move(options));
}

std::vector<std::string> ops_of_provider(const Context& context, const std::string& provider) {
  std::vector<std::string> ops;
  for (const std::string& op : context.kernels.ops())
    if (context.kernels.find(op, provider) != nullptr) ops.push_back(op);
  return ops;
}

std::vector<std::string> cuda_providers(const Context& context) {
  std::set<std::string> found;
  for (const std::string& op : context.kernels.ops())
    for (const std::string& provider : context.kernels.providers(op))
      if (provider.starts_with("cuda")) found.insert(provider);
  return {found.begin(), found.end()};
}

std::string provider_of_form(const Context& context, const std::string& op, cuda::Mathematics mathematics) {
  const std::string provider = provider_of(mathematics);
  return context.kernels.find(op, provider) != nullptr ? provider : provider_of(cuda::Mathematics::device);
}

namespace {

const Kernel& kernel_of(const Context& context, const std::string& op, const std::string& provider) {
  return context.kernel_for(op,
                            provider.empty() ? provider_of_form(context, op, cuda::Mathematics::reference) : provider);
}

// With missing operands at the end as absent ones.
std::vector<Tensor> completed(const Op& op, std::vector<Tensor> operands) {
  operands.resize(op.schema.tensor_count());
  return operands;
}

}  // namespace

std::vector<Tensor> meaning_of(const Context& context, const std::string& op, const std::vector<Tensor>& operands,
                               const Attributes& attributes) {
  Interpreter interpreter(context);
  std::vector<Tensor> results;
  const std::vector<Tensor> all = completed(context.ops.at(op), operands);
  for (const Value& value : call(op.c_str(), values_of(interpreter, all), attributes.entries(), false, &interpreter))
    results.push_back(value.tensor());
  return results;
}

Verdict supports_of_cuda(const Context& context, const std::string& name, const std::vector<Tensor>& operands,
                         const Attributes& attributes, const std::string& provider) {
  const std::vector<std::optional<Meta>> metas = metas_of(completed(context.ops.at(name), operands));
  const std::vector<Meta> results = infer_results(context.ops.at(name), context.ops, metas, attributes);
  return kernel_of(context, name, provider).supports({metas, results, attributes, {1, 4096}});
}

std::vector<Tensor> by_cuda(const Context& context, const std::string& name, const std::vector<Tensor>& operands,
                            const Attributes& attributes, const std::string& provider) {
  const Op& op = context.ops.at(name);
  const Kernel& kernel = kernel_of(context, name, provider);
  const std::vector<Tensor> all = completed(op, operands);
  const std::vector<Meta> results = infer_results(op, context.ops, metas_of(all), attributes);
  const Verdict verdict = supports_of_cuda(context, name, operands, attributes, provider);
  USER_CHECK(bool(verdict), "[{}] {}", name, verdict.reason());
  Interpreter home(context);
  return run_kernel(op, kernel, values_of(home, all), attributes, results, false, *context.threads);
}

Tensor moved_by(const Tensor& tensor, std::int64_t bytes) {
  if (!tensor.defined() || !may_begin_anywhere(tensor.meta)) return tensor;
  bytes = std::max<std::int64_t>(bytes, dtype_info(tensor.meta.dtype).block_bytes);
  const std::int64_t whole = tensor.storage->bytes() - tensor.byte_offset;
  Tensor moved{.meta = tensor.meta, .storage = Storage::allocate(whole + bytes), .byte_offset = bytes};
  std::memcpy(moved.data(), tensor.data(), static_cast<std::size_t>(whole));
  return moved;
}

std::string difference_of_results(const std::vector<Tensor>& wanted, const std::vector<Tensor>& came) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (const std::string text = difference(wanted[i], came[i], {}, true); !text.empty())
      return fmt::format("result {}: {}", i, text);
  return "";
}

}  // namespace weft
