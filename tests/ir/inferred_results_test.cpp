// Remembered results are the inferred ones.

#include "ir/inferred_results.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/parse.h"
#include "ir/trace.h"

namespace weft::inferred_results_test {

const OpTable& ops() {
  static const OpTable table = make_op_table();
  return table;
}

TEST(InferredResults, TellCallsApartByOperandsAndByAttributes) {
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 8], %y: f32[s0, 16], %z: f16[s0, 8]) stage=pure {\n"
      "  %a = slice(%x, dim=-1, start=0, end=4)\n  %b = slice(%x, dim=-1, start=0, end=6)\n"
      "  %c = neg(%x)\n  %d = neg(%y)\n  %e = neg(%z)\n  %f = exp(%x)\n  %g = slice(%x, dim=-1, start=0, end=4)\n"
      "  return %a, %b, %c, %d, %e, %f, %g\n}\n",
      ops());
  InferredResults inferred;
  for (int round = 0; round < 2; ++round)
    for (const auto& node : graph->nodes()) {
      const std::vector<Meta>& results = inferred.of(*node, ops());
      ASSERT_EQ(results.size(), 1u);
      EXPECT_EQ(results[0], node->result()->meta) << node->result()->name;
    }
}

TEST(InferredResults, AreThoseOfATraceWhoseCallsRepeat) {
  Graph graph("g", Stage::traced);
  Trace trace(ops(), graph);
  Value x = trace.input("x", Meta::tensor(DType::f32, {Dim::symbol("s0"), 8}));
  for (const int width : {8, 8, 6, 6, 4}) {
    x = call("slice", {x}, {{"dim", -1}, {"start", 0}, {"end", width}})[0];
    EXPECT_EQ(x.meta().shape.back(), Dim(width));
  }
  EXPECT_THROW(call("slice", {x}, {{"dim", -1}, {"start", 0}, {"end", 8}}), UserError) << "though x had 8 before";
  EXPECT_EQ(graph.nodes().size(), 5u);
}

TEST(InferredResults, RememberNoRefusal) {
  const auto graph =
      parse_graph("graph g(%x: f32[s0, 8], %y: f32[s0, 4]) stage=pure {\n  %a = add(%x, %x)\n  return %a\n}\n", ops());
  Node* node = graph->nodes().front().get();
  InferredResults inferred;
  EXPECT_EQ(inferred.of(*node, ops()).size(), 1u);
  graph->set_operand(node, 1, graph->inputs()[1].get());
  EXPECT_THROW(inferred.of(*node, ops()), UserError);
  EXPECT_THROW(inferred.of(*node, ops()), UserError);
  graph->set_operand(node, 1, graph->inputs()[0].get());
  EXPECT_EQ(inferred.of(*node, ops())[0], node->result()->meta);
}

}  // namespace weft::inferred_results_test
