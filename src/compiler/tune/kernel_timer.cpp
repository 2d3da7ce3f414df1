#include "compiler/tune/kernel_timer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "compiler/run/sample_call.h"

namespace weft {
namespace {

constexpr std::int64_t kBeyondCaches = 64 << 20;
constexpr std::int64_t kMostCopies = 256;

std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

}  // namespace

KernelTimer::KernelTimer(const Context& context, const Op& op, const Kernel& kernel, std::vector<Tensor> operands,
                         Attributes attributes)
    : context_(context), kernel_(kernel), attributes_(std::move(attributes)), operands_(std::move(operands)) {
  const std::vector<std::optional<Meta>> metas = metas_of(operands_);
  const PreparedCall call =
      prepare_call(op, kernel, metas, attributes_, infer_results(op, context.ops, metas, attributes_));
  is_empty_ = call.is_empty;
  results_.resize(call.results.size());
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    if (call.written[i] < 0) continue;
    Tensor& result = results_[static_cast<std::size_t>(call.written[i])];
    result = operands_[i];
    const Meta& wanted = call.results[static_cast<std::size_t>(call.written[i])];
    if (result.meta == wanted) continue;
    result = Tensor::empty(wanted);
    copied_.push_back({std::exchange(operands_[i], result), result});
  }
  StoragePool pool;
  for (std::size_t i = 0; i < results_.size(); ++i)
    if (!results_[i].defined()) results_[i] = fresh_result(call, i, pool);
  if (call.scratch_bytes > 0) scratch_ = Storage::allocate(call.scratch_bytes);
  operand_views_ = views_of(operands_);
  result_views_ = views_of(results_);
}

void KernelTimer::take_turns(std::size_t operand, std::vector<Tensor> tensors, std::size_t first) {
  CHECK(!tensors.empty(), "there is nothing to time");
  turning_ = operand;
  turns_ = std::move(tensors);
  turn_views_ = views_of(turns_);
  turn_ = first;
}

void KernelTimer::run() {
  if (is_empty_) return;
  for (const Copied& copied : copied_) {
    const TensorView from = copied.from.view(), to = copied.to.view();
    context_.kernel_for("clone", "native").run({{&from, 1}, {&to, 1}, Attributes(), {}, *context_.threads});
  }
  if (!turns_.empty()) operand_views_[turning_] = turn_views_[turn_++ % turns_.size()];
  std::span<std::byte> scratch;
  if (scratch_) scratch = {scratch_->data(), static_cast<std::size_t>(scratch_->bytes())};
  kernel_.run({operand_views_, result_views_, attributes_, scratch, *context_.threads});
}

double KernelTimer::seconds(const std::function<double()>& clock, int repeats) {
  const double start = clock();
  for (int i = 0; i < repeats; ++i) run();
  return (clock() - start) / repeats;
}

std::vector<Tensor> copies_beyond_caches(const Tensor& tensor) {
  const std::int64_t bytes = std::max<std::int64_t>(tensor.storage->bytes(), 1);
  const std::int64_t count = std::clamp<std::int64_t>(kBeyondCaches / bytes, 1, kMostCopies);
  std::vector<Tensor> all{tensor};
  while (static_cast<std::int64_t>(all.size()) < count) all.push_back(duplicate(tensor));
  return all;
}

Tensor duplicate(const Tensor& tensor) {
  if (tensor.meta.kind == MetaKind::batch) return tensor;
  Tensor copy = tensor;
  copy.storage = Storage::allocate(tensor.storage->bytes());
  std::memcpy(copy.storage->data(), tensor.storage->data(), static_cast<std::size_t>(tensor.storage->bytes()));
  return copy;
}

}  // namespace weft
