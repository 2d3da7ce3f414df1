#include "tests/kernels/compiled_calls.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "compiler/check/tensor_difference.h"
#include "tests/compiled_graph.h"

namespace weft {
namespace {

constexpr TokenRange kRows{1, 4096};

std::shared_ptr<Context> context_of_kernels(const std::string& ceiling, int threads) {
  auto context = test_context(ceiling, threads);
  for (const auto& [name, op] : context->ops.all()) context->priorities.set(name, {"cpu"});
  return context;
}

}  // namespace

CompiledCalls::CompiledCalls(const std::string& ceiling, int threads)
    : context_(context_of_kernels(ceiling, threads)), evaluator_(*context_, kRows) {}

void CompiledCalls::expect_same(const std::string& op, const std::vector<std::optional<Tensor>>& operands,
                                const Attributes& attributes, const std::vector<Tensor>& came) {
  const Op& called = context_->ops.at(op);
  Values values;
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_written = std::any_of(called.donates.begin(), called.donates.end(), [&](const Donation& donation) {
      return donation.argument == static_cast<int>(i);
    });
    tensors.push_back(!operands[i] ? Tensor() : is_written ? copy_of(*operands[i]) : *operands[i]);
    values.push_back(operands[i] ? evaluator_.value(tensors.back()) : Value());
  }
  const auto graph = graph_of_call(called, tensors, attributes, context_->ops);
  const bool is_long = std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
    return tensor.defined() && tensor.meta.rank() > 0 && tensor.meta.shape[0].number() > kRows.hi;
  });
  std::vector<Tensor> compiled;
  if (is_long) {
    std::erase_if(tensors, [](const Tensor& tensor) { return !tensor.defined(); });
    compiled = run_compiled(*graph, *context_, kRows, tensors);
  } else {
    for (const Value& result : evaluator_.evaluate(called, values, attributes, false))
      compiled.push_back(result.tensor());
  }
  EXPECT_EQ(first_difference(*graph, came, compiled), "") << op << ", compiled";
}

}  // namespace weft
