#include "compiler/graph_program.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "ir/parse.h"
#include "tests/thrown_message.h"

namespace weft::graph_program_test {

std::shared_ptr<Context> context_of(const std::string& option = "", const std::string& value = "") {
  Options options;
  options.threads = 2;
  options.max_num_batched_tokens = 16;
  if (!option.empty()) set_option(options, option, value, "test");
  return make_context(options);
}

Tensor rows_of(std::int64_t rows) {
  Tensor tensor = Tensor::empty(Meta::tensor(DType::f32, {rows, 3}));
  for (std::int64_t i = 0; i < 3 * rows; ++i) tensor.as<float>()[i] = 1 + static_cast<float>(i);
  return tensor;
}

TEST(GraphProgram, GivesTheSameCompiledStoppedAndEager) {
  for (const auto& [option, value] : std::vector<std::pair<const char*, const char*>>{
           {"", ""}, {"enforce-eager", "true"}, {"compile-to", "traced"}, {"compile-to", "split"}}) {
    const auto context = context_of(option, value);
    const auto graph =
        parse_graph("graph g(%x: f32[s0, 3]) stage=traced {\n  %y = neg(%x)\n  return %y, %x\n}", context->ops);
    GraphProgram program(*context, graph);
    EXPECT_EQ(program.record() == nullptr, context->options.enforce_eager);
    for (const std::int64_t rows : {5, 1, 16}) {
      const std::vector<Tensor> inputs{rows_of(rows)};
      const std::vector<Tensor> results = program.run(inputs);
      ASSERT_EQ(results.size(), 2U);
      EXPECT_EQ(results[1].data(), inputs[0].data()) << "it is the input";
      for (std::int64_t i = 0; i < 3 * rows; ++i)
        EXPECT_EQ(results[0].as<float>()[i], -inputs[0].as<float>()[i]) << option << " " << rows;
    }
  }
}

TEST(GraphProgram, SymbolsWithoutBoundsGetThoseOfOneStep) {
  const auto context = context_of();
  const auto graph =
      parse_graph("graph g(%x: f32[s0, s1]) stage=traced where s1 in [1, 4] {\n  return %x\n}", context->ops);
  complete_bounds(*graph, context->options);
  EXPECT_EQ(graph->bounds, (Bounds{{"s0", {1, 16}}, {"s1", {1, 4}}}));
  const TokenRange range = token_range(*graph, context->options);
  EXPECT_EQ(range.lo, 1);
  EXPECT_EQ(range.hi, 16);
}

TEST(GraphProgram, InputsMustFitTheTextAndEachOther) {
  const auto context = context_of();
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 3], %y: f32[s0, 3]) stage=traced where s0 in [2, 4] {\n  return %x\n}", context->ops);
  const auto refusal = [&](const Tensor& x, const Tensor& y) -> std::string {
    Bindings symbols;
    return message_of([&] {
      check_input(*graph->inputs()[0], x, symbols, graph->bounds);
      check_input(*graph->inputs()[1], y, symbols, graph->bounds);
    });
  };
  EXPECT_EQ(refusal(rows_of(3), rows_of(3)), "");
  EXPECT_EQ(refusal(rows_of(0), rows_of(0)), "");
  EXPECT_EQ(refusal(rows_of(3), rows_of(2)), "[graph run] inputs disagree on s0: 3 and 2 (y)");
  EXPECT_EQ(refusal(rows_of(5), rows_of(5)), "[graph run] s0 must be in [2, 4], but is 5");
  EXPECT_EQ(refusal(Tensor::empty(Meta::tensor(DType::f16, {3, 3})), rows_of(3)),
            "[graph run] input x must be f32[s0, 3], but is f16[3, 3]");
}

}  // namespace weft::graph_program_test
