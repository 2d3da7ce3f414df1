// The two prints and their laws, on graphs made at random.

#include "ir/print.h"

#include <random>

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/verify.h"

namespace weft {
namespace {

const OpTable& ops() {
  static const OpTable table = make_op_table();
  return table;
}

std::shared_ptr<Graph> parsed(const std::string& text) { return parse_graph(text, ops()); }

// A graph of `count` random nodes over rows of 64, some of them named, some with an origin.
std::shared_ptr<Graph> random_graph(std::uint32_t seed, int count) {
  std::mt19937 random(seed);
  auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  auto graph = std::make_shared<Graph>("r" + std::to_string(seed), Stage::traced);
  const Meta rows = Meta::tensor(DType::f32, {Dim::symbol("s0"), 64});
  std::vector<GraphValue*> values;
  for (std::size_t i = 0; i < 1 + below(3); ++i)
    values.push_back(graph->add_input(rows, below(2) ? "in." + std::to_string(i) : ""));
  graph->inputs()[0]->donated = below(2) == 0;
  GraphValue* weight = graph->add_input(Meta::tensor(DType::f32, {64}), "w");
  weight->param = true;
  weight->key = "blk.\"1\"\n";
  auto add = [&](const char* name, std::vector<GraphValue*> operands,
                 const std::vector<std::pair<std::string, Attribute>>& given) {
    const Op& op = ops().at(name);
    const Attributes attributes = complete_attributes(op.schema, given);
    std::vector<std::optional<Meta>> metas;
    for (const GraphValue* operand : operands)
      metas.push_back(operand == nullptr ? std::optional<Meta>() : std::optional(operand->meta));
    Node* node = graph->add_op(op, std::move(operands), attributes, infer_results(op, ops(), metas, attributes));
    if (below(3) == 0) node->result()->name = "named_" + std::to_string(graph->nodes().size());
    if (below(3) == 0) node->origin = {{"layer", std::to_string(below(9))}, {"part", "mlp"}};
    for (const auto& result : node->results)
      if (result->meta == rows) values.push_back(result.get());
    return node;
  };
  auto any = [&] { return values[below(values.size())]; };
  const double reals[] = {1, -0.0, 0.1, 1e-5, 1e300, 5e-324, 3.0};
  for (int i = 0; i < count; ++i) {
    switch (below(6)) {
      case 0:
        add("add", {any(), any()}, {});
        break;
      case 1:
        add("mul_scalar", {any()}, {{"value", reals[below(std::size(reals))]}});
        break;
      case 2:
        add("rms_norm", {any(), below(2) ? weight : nullptr}, {{"epsilon", 1e-6}});
        break;
      case 3:
        add("fused_add_rms_norm", {any(), any(), nullptr}, {{"epsilon", 1e-5}})->maybe_inplace = below(2) == 0;
        break;
      case 4: {
        Node* view = add("reshape", {any()}, {{"shape", Attribute::shape({Dim::symbol("s0"), 4, 16})}});
        add("reshape", {view->result()}, {{"shape", Attribute::shape({Dim::symbol("s0"), 64})}});
        break;
      }
      default:
        add("clamp", {any()}, {{"min", below(2) ? Attribute(-1.5) : Attribute()}});
    }
  }
  graph->set_results({any(), any()});
  return graph;
}

TEST(Print, ObeysItsLawsOnRandomGraphs) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const auto graph = random_graph(seed, 1 + static_cast<int>(seed % 20));
    ASSERT_EQ(find_breach(*graph, ops()).value_or(""), "");
    const std::string text = display(*graph), form = canonical(*graph);
    const auto again = parsed(text);
    ASSERT_TRUE(structurally_equal(*again, *graph)) << text;
    ASSERT_EQ(display(*again), text);
    ASSERT_EQ(canonical(*parsed(form)), form);
    ASSERT_EQ(display(*graph->clone()), text);
    ASSERT_EQ(structural_hash(*again), structural_hash(*graph));
  }
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

}  // namespace
}  // namespace weft
