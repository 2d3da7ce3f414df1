// Every op that is expanded to its meaning is recovered.

#include <algorithm>
#include <cstdio>

#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "compiler/run/interpret.h"
#include "compiler/run/sample_call.h"
#include "ir/print.h"
#include "ir/trace.h"
#include "ir/verify.h"
#include "passes/all.h"
#include "tests/test_context.h"

namespace weft::raise_test {

class Raise : public testing::Test {
 protected:
  Raise() : context_(test_context()), passes_(pass_context(*context_, {1, 8})) {}

  void clean(Graph& graph) {
    noop_elimination(graph, passes_);
    common_subexpression_elimination(graph, passes_);
    dead_code_elimination(graph, passes_);
  }

  // One node of the op on inputs of the sample's types.
  std::shared_ptr<Graph> graph_of(const Op& op, const SampleCall& call) {
    auto graph = std::make_shared<Graph>("g", Stage::pure);
    Trace trace(context_->ops, *graph);
    Values values;
    for (const Tensor& tensor : call.operands)
      values.push_back(tensor.defined() ? trace.input("", tensor.meta) : Value());
    trace.finish(trace.evaluate(op, values, call.attributes, false));
    return graph;
  }

  // Expands every node, `levels` times.
  void expand(Graph& graph, int levels) {
    for (int level = 0; level < levels; ++level) {
      std::vector<Node*> nodes;
      for (const auto& node : graph.nodes())
        if (!node->op->is_primitive()) nodes.push_back(node.get());
      for (Node* node : nodes) inline_meaning(graph, node, context_->ops);
      clean(graph);
    }
  }

  // Fusions make such ops.
  bool is_one_after_another(const Op& op) {
    const auto graph = graph_of(op, sample_calls(op)[0]);
    expand(*graph, 1);
    return !op.splits_as.empty() || std::none_of(graph->nodes().begin(), graph->nodes().end(), [](const auto& node) {
      return node->op->is_primitive() && !node->op->is_view;
    });
  }

  // Whether it casts columns of a matrix to the dtype they have: to f32, as a meaning does, that packs them.
  static bool copies_layout(const Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
      return node->is("cast") && node->operands[0]->meta.dtype == node->result()->meta.dtype;
    });
  }

  std::vector<Tensor> interpreted(const Graph& graph, const std::vector<Tensor>& operands) {
    Interpreter interpreter(*context_);
    Values values;
    for (const Tensor& tensor : operands)
      if (tensor.defined()) values.push_back(interpreter.value(tensor));
    std::vector<Tensor> results;
    for (const Value& value : run_graph(graph, interpreter, values)) results.push_back(value.tensor());
    return results;
  }

  std::shared_ptr<Context> context_;
  PassContext passes_;
};

TEST_F(Raise, GivesEveryExpandedOpBack) {
  int raised = 0, in_part = 0, small = 0, copied = 0;
  for (const auto& [name, op] : context_->ops.all()) {
    if (op.is_primitive() || is_one_after_another(op)) continue;
    for (const SampleCall& call : sample_calls(op)) {
      SCOPED_TRACE(call.text);
      const auto graph = graph_of(op, call);
      clean(*graph);
      for (const int levels : {1, 3}) {
        const auto expanded = graph->clone();
        expand(*expanded, levels);
        const std::string text = canonical(*expanded);
        if (expanded->nodes().size() < 2) {
          ++small;  // the op is one other op
          continue;
        }
        if (copies_layout(*expanded)) {
          ++copied;
          continue;
        }
        raise(*expanded, passes_);
        EXPECT_EQ(find_breach(*expanded, context_->ops), std::nullopt);
        // An op inside an op may have a form that none of its samples has; a part then stays expanded.
        if (levels > 1 && expanded->nodes().size() > 1) {
          ++in_part;
        } else {
          ASSERT_EQ(expanded->nodes().size(), 1u) << display(*expanded) << "from\n" << text;
          EXPECT_EQ(expanded->nodes().front()->name, name);
          ++raised;
        }
        // Not canonical(): two operands may have the same meaning in either order, and an attribute the same as its
        // default.
        const std::vector<Tensor> meant = interpreted(*graph, call.operands),
                                  came = interpreted(*expanded, call.operands);
        for (std::size_t i = 0; i < meant.size(); ++i) EXPECT_EQ(difference(meant[i], came[i], {}, true), "");
      }
    }
  }
  EXPECT_GT(raised, 20 * in_part);
  std::printf("count: %d expansions raised, %d in part, %d are single ops, %d copy a layout\n", raised, in_part, small,
              copied);
}

TEST_F(Raise, LeavesWhatIsAlmostAMeaning) {
  const Op& op = context_->ops.at("rms_norm");
  for (const SampleCall& call : sample_calls(op)) {
    const auto graph = graph_of(op, call);
    expand(*graph, 1);
    Node* rsqrt = nullptr;
    for (const auto& node : graph->nodes())
      if (node->is("rsqrt")) rsqrt = node.get();
    ASSERT_NE(rsqrt, nullptr) << display(*graph);
    // The inverse root has another reader.
    std::vector<GraphValue*> results = graph->results();
    results.push_back(rsqrt->result());
    graph->set_results(results);
    const std::string before = canonical(*graph);
    raise(*graph, passes_);
    EXPECT_EQ(canonical(*graph), before);
  }
}

}  // namespace weft::raise_test
