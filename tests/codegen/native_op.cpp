#include "tests/codegen/native_op.h"

#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "compiler/run/interpret.h"
#include "runtime/replay.h"
#include "tests/compiled_graph.h"

namespace weft {

std::shared_ptr<Context> native_context(const std::string& features, int threads) {
  auto context = test_context(features, threads);
  for (const auto& [name, op] : context->ops.all())
    if (!op.is_primitive()) context->priorities.set(name, {"native"});
  return context;
}

NativeOutcome run_native_op(const Op& op, const SampleCall& call, const Context& context) {
  Interpreter interpreter(context);
  const Values wanted = interpreter.evaluate(op, values_of(interpreter, call.operands), call.attributes, false);
  const auto graph = graph_of_call(op, call.operands, call.attributes, context.ops);
  PassRunnerOptions options;
  options.fuse = false;
  const Compiled compiled = compile(*graph, context, {1, 8}, options);
  Replay replay(compiled.plan, *context.threads);
  std::size_t input = 0;
  for (const Tensor& tensor : call.operands)
    if (tensor.defined()) replay.bind(input++, tensor);
  replay.run();
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(difference(wanted[i].tensor(), replay.result(i), {}, true), "") << call.text << " result " << i;
  NativeOutcome outcome;
  for (const PlanStep& step : compiled.plan->steps)
    ++(step.op.starts_with("rows_") ? outcome.functions : outcome.others);
  return outcome;
}

bool is_native_sample(const Op& op, const SampleCall& call) {
  if (op.is_primitive() || op.rows_of < 0) return false;
  if (op.name.find("linear") != std::string::npos) return false;
  for (const Tensor& tensor : call.operands)
    if (tensor.defined() && (!tensor.meta.is_tensor() || !tensor.meta.packed.empty())) return false;
  return op.name.find("all_") == std::string::npos && op.name.find("attention") == std::string::npos;
}

}  // namespace weft
