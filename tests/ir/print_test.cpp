// The two prints and their laws, on graphs made at random.

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
  });
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
    for (const std::string& b : bodies)
      EXPECT_EQ(structurally_equal(*parsed(head + a + tail), *parsed(head + b + tail)), a == b) << a << " " << b;
}

TEST(Print, MakesNamesThatSkipTakenOnes) {
  auto graph = parsed("graph g(%neg_0: f32[4]) stage=pure {\n  %y = neg(%neg_0)\n  return %y\n}\n");
  graph->nodes().front()->result()->name.clear();
  EXPECT_NE(display(*graph).find("%neg_1: f32[4] = neg(%neg_0)"), std::string::npos) << display(*graph);
}

}  // namespace weft::print_test
