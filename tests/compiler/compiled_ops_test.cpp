// Every op on its samples, compiled: the bits of the same kernels run op by op.

#include <algorithm>
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/compiled_graph.h"
#include "tests/test_context.h"

namespace weft::compiled_ops_test {

constexpr TokenRange kRange = {1, 8};

// The graph of the call alone, at the Context's choice.
std::string difference_of(const Op& op, const SampleCall& call, const Context& context) {
  const auto graph = graph_of_call(op, call.operands, call.attributes, context.ops);
  std::vector<Tensor> inputs;
  for (const Tensor& operand : call.operands)
    if (operand.defined()) inputs.push_back(operand);
  return first_difference(*graph, run_eagerly(*graph, context, kRange, inputs),
                          run_compiled(*graph, context, kRange, inputs));
}

TEST(CompiledOps, GiveTheBitsOfEagerOnEverySampleInKernelsAlone) {
  const auto context = kernel_context();
  int calls = 0;
  for (const auto& [name, op] : context->ops.all())
    for (const SampleCall& call : sample_calls(op)) {
      EXPECT_EQ(difference_of(op, call, *context), "") << call.text;
      ++calls;
    }
  std::printf("count: %d calls of %zu ops\n", calls, context->ops.all().size());
}

// Functions take long to compile, so each op has one sample.
TEST(CompiledOps, GiveTheBitsOfEagerWithCodeGenerated) {
  const auto context = test_context();
  for (const auto& [name, op] : context->ops.all())
    for (const SampleCall& call : sample_calls(op, op.samples.front()))
      EXPECT_EQ(difference_of(op, call, *context), "") << call.text;
  std::printf("count: %zu functions\n", context->generated->size());
}

// Every existing kernel, for the samples that it supports.
TEST(CompiledOps, GiveTheBitsOfEveryKernel) {
  const auto context = kernel_context();
  int kernels = 0, calls = 0;
  for (const std::string& name : context->kernels.ops()) {
    const Op& op = context->ops.at(name);
    for (const std::string& provider : context->kernels.providers(name)) {
      const Kernel* kernel = context->kernels.find(name, provider);
      if (kernel == nullptr) continue;
      const PriorityScope scope(*context, name, {provider});
      int supported = 0;
      for (const SampleCall& call : sample_calls(op)) {
        const std::vector<std::optional<Meta>> operands = metas_of(call.operands);
        const std::vector<Meta> results = infer_results(op, context->ops, operands, call.attributes);
        if (!kernel->supports({operands, results, call.attributes, kRange})) continue;
        EXPECT_EQ(difference_of(op, call, *context), "") << call.text << " by " << provider;
        ++supported;
      }
      kernels += supported > 0 ? 1 : 0;
      calls += supported;
    }
  }
  EXPECT_GE(kernels, 100);
  std::printf("count: %d kernels in %d calls\n", kernels, calls);
}

}  // namespace weft::compiled_ops_test
