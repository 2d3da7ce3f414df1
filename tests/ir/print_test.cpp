// The two text forms and their laws, on random graphs.

#include "ir/print.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/verify.h"
#include "tests/graph_recipes.h"

namespace weft::print_test {

const OpTable& ops() {
  static const OpTable table = make_op_table();
  return table;
}

std::shared_ptr<Graph> parsed(const std::string& text) { return parse_graph(text, ops()); }

TEST(Print, ObeysItsLawsOnRandomGraphs) {
  GraphFeatures hit;
  check_property(300, [&](const GraphRecipe& recipe) {
    const auto graph = build_graph(recipe, ops());
    RC_ASSERT(find_breach(*graph, ops()).value_or("") == "");
    RC_ASSERT(broken_text_law(*graph, ops()) == "");
    hit += features_of(*graph);
  });
  if (HasFailure()) return;
  EXPECT_GT(std::min({hit.views, hit.strided_views, hit.shared_values, hit.several_results, hit.returned,
                      hit.given_away, hit.params, hit.absent_operands, hit.repeated_nodes, hit.unread_nodes}),
            80)
      << hit.text();
}

// Another name for each value and piece of text that equality must not see.
TEST(Print, CanonicalFormOfRandomGraphsIgnoresNamesAndOrigins) {
  check_property(100, [](const GraphRecipe& recipe) {
    const auto graph = build_graph(recipe, ops()), other = build_graph(recipe, ops());
    other->name = "other";
    for (const auto& input : other->inputs()) {
      input->name = "of_" + input->name;
      input->key.clear();
    }
    for (const auto& node : other->nodes()) {
      node->origin.clear();
      for (const auto& result : node->results) result->name.clear();
    }
    RC_ASSERT(canonical(*other) == canonical(*graph));
    RC_ASSERT(has_equal_nodes(*other, *graph));
  });
}

// One change at a time to a copy: equality by nodes and by text agree.
TEST(Print, EqualityByNodesIsEqualityByText) {
  int equal = 0, different = 0;
  check_property(200, [&](const GraphRecipe& recipe, std::uint32_t choice) {
    const auto graph = build_graph(recipe, ops()), other = build_graph(recipe, ops());
    std::vector<Node*> nodes;
    for (const auto& node : other->nodes()) nodes.push_back(node.get());
    RC_PRE(!nodes.empty());
    Node* node = nodes[choice / 8 % nodes.size()];
    GraphValue* input = other->inputs().empty() ? nullptr : other->inputs()[choice / 8 % other->inputs().size()].get();
    switch (choice % 8) {
      case 0:
        node->provider = "cpu";
        break;
      case 1:
        node->maybe_inplace = !node->maybe_inplace;
        break;
      case 2:
        if (input != nullptr) input->donated = !input->donated;
        break;
      case 3:
        if (input != nullptr) input->overwrites = !input->overwrites;
        break;
      case 4:
        if (other->results().size() > 1) other->set_results({other->results().rbegin(), other->results().rend()});
        break;
      case 5:
        other->kind = DefinitionKind::piece;
        break;
      case 6:
        other->add_input(Meta::tensor(DType::f32, {3}), "one_more");
        break;
      default:
        break;
    }
    RC_ASSERT(has_equal_nodes(*graph, *other) == structurally_equal(*graph, *other));
    (structurally_equal(*graph, *other) ? equal : different) += 1;
  });
  EXPECT_GT(std::min(equal, different), 20) << equal << " equal, " << different << " different";
}

TEST(Print, EqualityButForScalarsPassesOverLiftableNumbersAlone) {
  const auto graph_of = [](const std::string& call) {
    return parsed("graph g(%x: f32[s0, 4], %u: f32[s0, 4]) stage=pure {\n  %y = " + call + "\n  return %y\n}\n");
  };
  const auto is_equal = [&](const std::string& a, const std::string& b) {
    EXPECT_EQ(has_equal_nodes(*graph_of(a), *graph_of(b)), a == b);
    return has_equal_nodes_but_for_scalars(*graph_of(a), *graph_of(b));
  };
  EXPECT_TRUE(is_equal("add_scalar(%x, value=1.0)", "add_scalar(%x, value=2.0)"));
  EXPECT_TRUE(is_equal("clamp(%x, min=1.0)", "clamp(%x, min=0.5)"));
  EXPECT_FALSE(is_equal("clamp(%x, min=1.0)", "clamp(%x, max=1.0)"));
  EXPECT_FALSE(is_equal("add_scalar(%x, value=1.0)", "mul_scalar(%x, value=1.0)"));
  EXPECT_FALSE(is_equal("add_scalar(%x, value=1.0)", "add_scalar(%u, value=1.0)"));
  EXPECT_FALSE(is_equal("sum(%x, dim=-1)", "sum(%x, dim=0)"));
  EXPECT_FALSE(is_equal("replace_nan(%x, value=1.0)", "replace_nan(%x, value=2.0)")) << "which is not liftable";
}

TEST(Print, CanonicalFormIgnoresNamesKeysOriginsAndBounds) {
  const auto a = parsed(
      "graph one(%x: f32[s0, 4], param(\"a\") %w: f32[4]) stage=pure where s0 in [1, 8] {\n"
      "  %y = mul(%x, %w)  #@ layer=1\n  return %y\n}\n");
  const auto b =
      parsed("graph two(%u: f32[s0, 4], param(\"b\") %v: f32[4]) stage=pure {\n  %z = mul(%u, %v)\n  return %z\n}\n");
  EXPECT_TRUE(structurally_equal(*a, *b));
  EXPECT_EQ(structural_hash(*a), structural_hash(*b));
}

TEST(Print, CanonicalFormTellsApartWhatChangesTheResult) {
  const std::string head = "graph g(%x: f32[s0, 4], %u: f32[s0, 4]) stage=pure {\n  %y = ";
  const std::string tail = "\n  return %y\n}\n";
  std::vector<std::string> bodies = {"sub(%x, %u)",
                                     "sub(%u, %x)",
                                     "add(%x, %u)",
                                     "add_scalar(%x, value=1.0)",
                                     "add_scalar(%x, value=-0.0)",
                                     "add_scalar(%x, value=0.0)"};
  for (const std::string& a : bodies)
    for (const std::string& b : bodies) {
      const auto left = parsed(head + a + tail), right = parsed(head + b + tail);
      EXPECT_EQ(structurally_equal(*left, *right), a == b) << a << " " << b;
      EXPECT_EQ(has_equal_nodes(*left, *right), a == b) << a << " " << b;
    }
}

TEST(Print, MakesNamesThatSkipTakenOnes) {
  auto graph = parsed("graph g(%neg_0: f32[4]) stage=pure {\n  %y = neg(%neg_0)\n  return %y\n}\n");
  graph->nodes().front()->result()->name.clear();
  EXPECT_NE(display(*graph).find("%neg_1: f32[4] = neg(%neg_0)"), std::string::npos) << display(*graph);
}

}  // namespace weft::print_test
