#include "tests/compiler/overwriting_kernels.h"

#include <cstring>

#include "builtin/context.h"

namespace weft {
namespace {

// Runs on copies of the arguments that it overwrites, and first fills their own memory with garbage: no other argument
// may overlap it.
Registrations::Run overwriting(std::vector<int> writes, Registrations::Run run) {
  return [run = std::move(run), writes = std::move(writes)](const KernelCall& call) {
    std::vector<TensorView> operands(call.operands.begin(), call.operands.end());
    std::vector<std::shared_ptr<Storage>> copies;
    for (const int index : writes) {
      TensorView& operand = operands[static_cast<std::size_t>(index)];
      const auto bytes = static_cast<std::size_t>(bytes_of(operand.dtype, operand.elements()));
      copies.push_back(Storage::allocate(static_cast<std::int64_t>(bytes)));
      std::memcpy(copies.back()->data(), operand.data, bytes);
      std::memset(operand.data, 0xFF, bytes);
      operand.data = copies.back()->data();
    }
    run({operands, call.results, call.attributes, call.scratch, call.threads});
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
    call.results[0].as<float>()[i] = call.operands[0].as<float>()[i] + call.operands[1].as<float>()[i];
}

}  // namespace

std::shared_ptr<Context> overwriting_context(const Overwritten& overwritten, std::vector<std::string> splitting_ops) {
  const std::shared_ptr<Context> tree = test_context();
  Registrations registrations("the test");
  registrations.register_op("bump", define_bump);
  registrations.register_impl("bump", "over", overwriting({0}, run_bump), {.writes = {0}, .batch_invariant = true});
  Options options;
  options.threads = 1;
  options.splitting_ops = std::move(splitting_ops);
  options.backend = "eager";  // generated code writes over nothing
  for (const auto& [name, writes] : overwritten) {
    const Kernel& inner = *tree->kernels.find(name, "cpu");
    registrations.register_impl(
        name, "over", overwriting(writes, inner.run),
        {.supports = inner.supports, .writes = writes, .batch_invariant = true, .scratch_bytes = inner.scratch_bytes});
    options.ir_op_priority[name] = {"over"};
  }
  return make_context(std::move(options), std::move(registrations));
}

}  // namespace weft
