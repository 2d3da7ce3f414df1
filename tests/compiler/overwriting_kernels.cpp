#include "tests/compiler/overwriting_kernels.h"

#include <algorithm>
#include <cstring>

#include "builtin/context.h"

namespace weft {
namespace {

// Computes beside, then copies over the arguments.
Registrations::Run overwriting(const Op& op, const Kernel& inner, const std::vector<int>& writes) {
  return [donates = op.donates, run = inner.run, writes](const KernelCall& call) {
    std::vector<TensorView> results(call.results.begin(), call.results.end());
    std::vector<std::shared_ptr<Storage>> beside(results.size());
    for (const Donation& donation : donates) {
      if (std::find(writes.begin(), writes.end(), donation.argument) == writes.end()) continue;
      const auto result = static_cast<std::size_t>(donation.result);
      beside[result] = Storage::allocate(bytes_of(results[result].dtype, results[result].elements()));
      results[result].data = beside[result]->data();
    }
    run({call.operands, results, call.attributes, call.scratch, call.threads});
    for (std::size_t i = 0; i < beside.size(); ++i)
      if (beside[i]) std::memcpy(call.results[i].data, beside[i]->data(), static_cast<std::size_t>(beside[i]->bytes()));
  };
}

void define_bump(OpDefinition& op) {
  op.schema("bump(Tensor x, Tensor y) -> Tensor");
  op.allow_inplace().donates("x", 0);
  op.means([](Evaluator&, const Values& v, const Attributes&) { return call("add", {v[0], v[1]}, {}); });
  op.sample({{"x", {3, 8}, DType::f32}, {"y", {3, 8}, DType::f32}});
}

void run_bump(const KernelCall& call) {
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i)
    call.results[0].as<float>()[i] += call.operands[1].as<float>()[i];
}

}  // namespace

std::shared_ptr<Context> overwriting_context(const Overwritten& overwritten, std::vector<std::string> splitting_ops) {
  const std::shared_ptr<Context> tree = test_context();
  Registrations registrations("the test");
  registrations.register_op("bump", define_bump);
  registrations.register_impl("bump", "over", run_bump, {.writes = {0}, .batch_invariant = true});
  Options options;
  options.threads = 1;
  options.splitting_ops = std::move(splitting_ops);
  for (const auto& [name, writes] : overwritten) {
    const Op& op = tree->ops.at(name);
    const Kernel& inner = *tree->kernels.find(name, "cpu");
    registrations.register_impl(
        name, "over", overwriting(op, inner, writes),
        {.supports = inner.supports, .writes = writes, .batch_invariant = true, .scratch_bytes = inner.scratch_bytes});
    options.ir_op_priority[name] = {"over"};
  }
  return make_context(std::move(options), std::move(registrations));
}

}  // namespace weft
