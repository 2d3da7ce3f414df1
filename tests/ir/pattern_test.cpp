// Patterns as text: accepted and refused texts with their positions, and the laws of the two text forms.

#include "ir/pattern.h"

#include <algorithm>

#include "base/error.h"
#include "ir/parse.h"
#include "tests/graph_recipes.h"
#include "tests/thrown_message.h"

namespace weft::pattern_test {

const OpTable& ops() {
  static const OpTable table = make_op_table();
  return table;
}

std::shared_ptr<Pattern> parsed(const std::string& text) {
  return std::get<std::shared_ptr<Pattern>>(parse_definitions(text, ops(), "t").at(0));
}

void expect_refused(const std::string& text, const std::string& part) {
  const std::string message = message_of([&] { parse_definitions(text, ops(), "t"); });
  EXPECT_NE(message.find(part), std::string::npos) << text << "\n" << message;
}

// A pattern with this header, and bodies of one line and one return each.
std::string pattern_text(const std::string& header, const std::string& before, const std::string& after,
                         const std::string& before_returns = "%y", const std::string& after_returns = "%y") {
  return "pattern p" + header + " {\n  before {\n    " + before + "\n    return " + before_returns +
         "\n  }\n  after {\n    " + after + "\n    return " + after_returns + "\n  }\n}\n";
}

constexpr const char* kFusedAddRmsNorm =
    "pattern fused_add_rms_norm(?x: ?T[?n, ?d], ?residual: ?T[?n, ?d], ?weight: ?T[?d], ?epsilon: float) where "
    "?epsilon > 0.0 {\n"
    "  before {\n"
    "    %sum = add(?x, ?residual)\n"
    "    %y = rms_norm(%sum, ?weight, epsilon=?epsilon)\n"
    "    return %y, %sum\n"
    "  }\n"
    "  after {\n"
    "    %y, %r = fused_add_rms_norm(?x, ?residual, ?weight, epsilon=?epsilon)\n"
    "    return %y, %r\n"
    "  }\n"
    "}\n";

constexpr const char* kQuant =
    "pattern quant(?x, ?w: bf16[..., ?d], ?g: int, ?n: dim, ?to: dtype) where ?g in {64, 128}, ?n >= 1, ?to in {bf16, "
    "f16} {\n"
    "  before {\n"
    "    %h = reshape(?x, shape=[?n, 2*?g])\n"
    "    %c = cast(%h, dtype=?to)\n"
    "    %q, %s: f32[?n, 2*?d]{1, align(?n, 4)} = per_token_group_quant_int8(%c, group_size=?g)\n"
    "    %z = add(%q, ?w)\n"
    "    return %z, %s\n"
    "  }\n"
    "  after {\n"
    "    return ?x, ?w\n"
    "  }\n"
    "}\n";

TEST(Pattern, ReadsBackWhatDisplayPrints) {
  for (const char* text : {kFusedAddRmsNorm, kQuant}) {
    const auto pattern = parsed(text);
    EXPECT_EQ(display(*pattern), text);
    EXPECT_EQ(find_breach(*pattern).value_or(""), "");
    const std::string form = canonical(*pattern);
    EXPECT_EQ(canonical(*parsed(form)), form);
  }
}

TEST(Pattern, HoldsWildcardsByKind) {
  const auto pattern = parsed(kFusedAddRmsNorm);
  std::string kinds;
  for (const Wildcard& wildcard : pattern->wildcards)
    kinds += wildcard.name + " " + std::string(wildcard_kind_text(wildcard.kind)) + ", ";
  EXPECT_EQ(kinds, "x value, T dtype, n dim, d dim, residual value, weight value, epsilon float, ");
  const Condition& condition = pattern->find("epsilon")->conditions.at(0);
  EXPECT_EQ(condition.relation, Relation::above);
  EXPECT_EQ(condition.operands, std::vector<Attribute>{0.0});
  const PatternNode& norm = pattern->before.nodes.at(1);
  EXPECT_EQ(norm.operands.at(0), (PatternOperand{.node = 0}));
  EXPECT_EQ(norm.operands.at(1), (PatternOperand{.wildcard = 5}));
  EXPECT_EQ(norm.attributes.at("epsilon"), Attribute(Dim::symbol("?epsilon")));
  EXPECT_EQ(norm.attributes.entries().size(), norm.op->schema.parameters.size() - 2) << "defaults are filled in";
  EXPECT_EQ(pattern->after.results.at(1), (PatternOperand{.node = 0, .result = 1}));
}

TEST(Pattern, KeepsTypesAsFarAsTheyAreStated) {
  const auto pattern =
      parsed(pattern_text("(?a: f32[?n, 4]{?s, 1}, ?b: ?T[...], ?c: q4_1[?m, 64] packed=q4x32, ?k: kv[...], ?t: batch, "
                          "?l: kv[f16, block=16, heads=3, head_dim=64], ?o, ?f: f32[])",
                          "%y = mystery(?a, ?b, ?c, ?k, ?t, ?l, ?o, ?f)", "", "%y", "?a"));
  EXPECT_EQ(display(*parsed(display(*pattern))), display(*pattern));
  EXPECT_EQ(pattern->find("a")->type->strides, (Shape{Dim::symbol("?s"), 1}));
  EXPECT_TRUE(pattern->find("b")->type->open_shape);
  EXPECT_EQ(pattern->find("c")->type->packed, "q4x32");
  EXPECT_TRUE(pattern->find("k")->type->open_shape);
  EXPECT_EQ(pattern->find("l")->type->kv.heads, 3);
  EXPECT_FALSE(pattern->find("o")->type.has_value());
  EXPECT_EQ(find_breach(*pattern).value_or(""), "line 3: [mystery] is not an op of this program");
}

TEST(Pattern, SortsConditionsSoThatEqualOnesAreEqual) {
  const std::string before = "%y = mul_scalar(?x, value=?v)";
  const auto a = parsed(pattern_text("(?x, ?v: float) where ?v in {3, 1.0, 2.0}, ?v <= 9", before, "", "%y", "?x"));
  const auto b = parsed(pattern_text("(?u, ?w: float) where ?w <= 9.0, ?w in {1.0, 2.0, 3.0}",
                                     "%z = mul_scalar(?u, value=?w)", "", "%z", "?u"));
  EXPECT_TRUE(structurally_equal(*a, *b)) << canonical(*a) << canonical(*b);
  EXPECT_EQ(structural_hash(*a), structural_hash(*b));
  EXPECT_NE(display(*a).find("where ?v in {1.0, 2.0, 3.0}, ?v <= 9.0 {"), std::string::npos) << display(*a);
}

TEST(Pattern, CanonicalFormTellsApartWhatMatchesOtherwise) {
  const std::vector<std::string> texts = {
      pattern_text("(?x, ?y)", "%y = sub(?x, ?y)", "%y = neg(?x)"),
      pattern_text("(?x, ?y)", "%y = sub(?y, ?x)", "%y = neg(?x)"),
      pattern_text("(?x, ?y)", "%y = sub(?x, ?y)", "%y = neg(?y)"),
      pattern_text("(?x: f32[?n], ?y)", "%y = sub(?x, ?y)", "%y = neg(?x)"),
      pattern_text("(?x: f32[?n], ?y: f32[?n])", "%y = sub(?x, ?y)", "%y = neg(?x)"),
      pattern_text("(?x: f32[?n], ?y: f32[?m])", "%y = sub(?x, ?y)", "%y = neg(?x)"),
      pattern_text("(?x: ?T[?n], ?y: f32[?m])", "%y = sub(?x, ?y)", "%y = neg(?x)"),
      pattern_text("(?x: ?T[...], ?y: f32[?m])", "%y = sub(?x, ?y)", "%y = neg(?x)"),
      pattern_text("(?x: f32[?n], ?y: f32[?m]) where ?n > 1", "%y = sub(?x, ?y)", "%y = neg(?x)"),
      pattern_text("(?x: f32[?n], ?y: f32[?m]) where ?n >= 1", "%y = sub(?x, ?y)", "%y = neg(?x)"),
      pattern_text("(?x, ?y)", "%y: f32[...] = sub(?x, ?y)", "%y = neg(?x)"),
  };
  for (const std::string& a : texts)
    for (const std::string& b : texts) EXPECT_EQ(structurally_equal(*parsed(a), *parsed(b)), &a == &b) << a << b;
}

TEST(Pattern, MakesNamesForResultsThatCodeLeftWithout) {
  auto pattern = parsed(pattern_text("(?x)", "%neg_0 = neg(?x)\n    %y = neg(%neg_0)", "%y = abs(?x)"));
  pattern->before.nodes[1].results[0].name.clear();
  EXPECT_NE(display(*pattern).find("%neg_1 = neg(%neg_0)\n    return %neg_1"), std::string::npos) << display(*pattern);
}

TEST(Pattern, StandsAmongGraphs) {
  const std::string graph = "graph g(%x: f32[4]) stage=pure {\n  return %x\n}\n";
  const auto definitions = parse_definitions(kFusedAddRmsNorm + graph + kQuant, ops(), "t");
  ASSERT_EQ(definitions.size(), 3u);
  EXPECT_EQ(std::get<std::shared_ptr<Graph>>(definitions[1])->name, "g");
  EXPECT_EQ(parse_graphs(kQuant + graph, ops(), "t").size(), 1u);
  expect_refused(std::string(kQuant) + kQuant, "a pattern named quant is defined above already");
  expect_refused("piece p(%x: f32[4]) stage=lowered {\n  return %x\n}\n" + std::string(kQuant),
                 "expected 'piece', 'splitting' or the graph that the pieces belong to, but found 'pattern'");
}

TEST(Pattern, SaysWhereAndWhatItExpected) {
  expect_refused("pattern (?x) {", "t:1:9: expected the name of the pattern, but found '('");
  expect_refused("pattern p(%x) {", "t:1:11: expected a wildcard such as ?x, but found '%'");
  expect_refused("pattern p(?x: f99[4]) {", "t:1:15: expected a type such as f32[?n, 64]");
  expect_refused("pattern p(?x: f32[s0, 4]) {", "t:1:11: [p] s0 is a symbol of one graph");
  expect_refused("pattern p(?x: f32[4] {", "expected ')', but found '{'");
  expect_refused("pattern p(?x: f32[1,1,1,1,1,1,1]) {", "expected at most 6 dims");
  expect_refused("pattern p(?x) {\n  after {", "t:2:3: expected 'before', but found 'after'");
  expect_refused(pattern_text("(?x)", "neg(?x)", ""), "t:3:5: expected a result such as %x, or 'return'");
  expect_refused(pattern_text("(?x)", "%y = neg(?x) junk", ""), "t:3:18: expected the end of the line");
  expect_refused(pattern_text("(?x)", "%y = neg(?x)  #@ layer=3", ""), "expected the end of the line");
  expect_refused("pattern p(?x) {\n  before {\n    %y = neg(?x)\n    return %y\n  }\n}\n", "expected 'after'");
}

TEST(Pattern, RefusesWildcardsThatDoNotFit) {
  const std::string neg = "%y = neg(?x)";
  expect_refused(pattern_text("(?x, ?x)", neg, neg), "the wildcard ?x is declared twice");
  expect_refused(pattern_text("(?x: f32[?n], ?n: dim)", neg, neg), "the type of a value declares it already");
  expect_refused(pattern_text("(?n: dim, ?x: f32[?n])", neg, neg), "and so needs no declaration");
  expect_refused(pattern_text("(?x: f32[?x])", neg, neg), "?x is a value and cannot be in ?x");
  expect_refused(pattern_text("(?x: ?T[?T])", neg, neg), "?T is a dtype and cannot be in ?T");
  expect_refused(pattern_text("(?n: dim, ?x: ?n[4])", neg, neg), "?n is in the type of ?x");
  expect_refused(pattern_text("(?x: f32[2*?n])", neg, neg), "t:1:11: [p] the wildcard ?n is not declared");
  expect_refused(pattern_text("(?x)", "%y = neg(?z)", neg), "the wildcard ?z is not declared");
  expect_refused(pattern_text("(?x)", "%y = mul_scalar(?x, value=?v)", neg), "the wildcard ?v is not declared");
  expect_refused(pattern_text("(?x, ?v: float)", "%y = neg(?v)", neg), "?v is a float, no value");
  expect_refused(pattern_text("(?x, ?v: int)", "%y = mul_scalar(?x, value=?v)", neg),
                 "value cannot be ?v, of kind int");
  expect_refused(pattern_text("(?x, ?v: float)", "%y = mul_scalar(?x, value=2*?v)", neg),
                 "?v is a float and cannot be in 2*?v");
  expect_refused(pattern_text("(?x)", "%y = reshape(?x, shape=[s0, 4])", neg), "s0 is a symbol of one graph");
  expect_refused(pattern_text("(?x)", "%y: f32[?k] = neg(?x)", neg), "the wildcard ?k is not declared");
}

TEST(Pattern, RefusesConditionsThatSayNothing) {
  const auto refused = [](const std::string& where, const std::string& part) {
    expect_refused(pattern_text("(?x: f32[?n], ?v: float, ?b: bool) where " + where,
                                "%y = mystery(?x, value=?v, flag=?b)", "", "%y", "?x"),
                   part);
  };
  refused("?z > 1", "the wildcard ?z is not declared");
  refused("?x > 1", "?x is a value, which takes no condition '>'");
  refused("?b in {true}", "?b is a bool, which takes no condition 'in'");
  refused("?v > \"a\"", "a condition of ?v must be float");
  refused("?v > nan", "cannot be nan");
  refused("?n > ?n", "must be a number");
  refused("?n in {1, 2, 1}", "names 1 twice");
  refused("?n in {}", "expected");
  refused("?n > 1, ?n > 2", "the condition '>' of ?n is given twice");
  refused("?n = 1", "expected 'in', '>', '>=', '<' or '<='");
}

TEST(Pattern, RefusesBodiesThatCannotMatchOrReplace) {
  const std::string neg = "%y = neg(?x)";
  expect_refused(pattern_text("(?x, ?z)", neg, neg), "t:1:15: [p] before does not bind ?z");
  expect_refused(pattern_text("(?x, ?z)", neg, "%y = add(?x, ?z)"), "before does not bind ?z");
  expect_refused(pattern_text("(?x, ?n: dim)", "%y = reshape(?x, shape=[2*?n])", neg), "before does not bind ?n");
  expect_refused(pattern_text("(?x)", neg, neg, "?x"), "before returns a wildcard");
  expect_refused(pattern_text("(?x)", neg, neg, "%y, %y", "%y, %y"), "before returns one value twice");
  expect_refused(pattern_text("(?x)", neg, neg, "", ""), "before returns nothing");
  expect_refused(pattern_text("(?x)", neg, neg, "%y", "%y, ?x"), "before returns 1 values, but after 2");
  expect_refused(pattern_text("(?x)", neg + "\n    %z = neg(?x)", neg), "t:4:5: [p] nothing reads what neg gives");
  expect_refused(pattern_text("(?x)", neg, neg + "\n    %z = abs(?x)"), "t:8:5: [p] nothing reads what abs gives");
  expect_refused(pattern_text("(?x)", "%z = neg(?x)", "%y = neg(%z)", "%z"), "%z is used before it is defined in this");
  expect_refused(pattern_text("(?x)", neg + "\n    %y = neg(?x)", neg), "%y is defined twice");
  expect_refused(pattern_text("(?x)", "%y, %z = neg(?x)", neg), "[neg] gives 1 results, but 2 are named");
  expect_refused(pattern_text("(?x)", "%y = neg(?x, ?x)", neg), "[neg] takes 1 tensors, but 2 are given");
  expect_refused(pattern_text("(?x)", "%y = neg@cpu(?x)", neg), "an op of a pattern is a plain name");
  expect_refused(pattern_text("(?x)", "%y = mul_scalar(?x)", neg), "attribute value must be given");
  expect_refused(pattern_text("(?x)", "%y = mul_scalar(?x, speed=1.0)", neg), "has no attribute speed");
}

TEST(Pattern, KeepsItsLimits) {
  std::string header = "(?x", nodes = "%v0 = neg(?x)";
  for (int i = 0; i < 200; ++i) header += fmt::format(", ?w{}", i);
  expect_refused(pattern_text(header + ")", nodes, ""), "a pattern has at most 128 wildcards");
  for (int i = 0; i < 300; ++i) nodes += fmt::format("\n    %v{} = neg(%v{})", i + 1, i);
  expect_refused(pattern_text("(?x)", nodes, ""), "a body of a pattern has at most 256 nodes");
  std::string values = "0";
  for (int i = 1; i < 100; ++i) values += fmt::format(", {}", i);
  expect_refused(pattern_text("(?x: f32[?n]) where ?n in {" + values + "}", "%y = neg(?x)", ""),
                 "expected at most 64 values");
  expect_refused(pattern_text("(?x)", "%y = reshape(?x, shape=" + std::string(100, '[') + ")", ""), "nested at most");
}

// The graph as the `before` of a pattern: rows are `?n`, floats become wildcards, `after` returns inputs.
Pattern pattern_of(const Graph& graph, bool typed) {
  Pattern pattern{.name = "random"};
  const std::map<std::string, Dim> symbols = {{"s0", Dim::symbol("?n")}};
  std::map<const GraphValue*, PatternOperand> operands;
  for (const auto& input : graph.inputs()) {
    if (input->uses.empty()) continue;
    std::optional<PatternType> type;
    if (typed && input->meta.is_tensor()) {
      type = PatternType{.dtype_wildcard = "T", .shape = input->meta.shape};
      for (Dim& dim : type->shape) dim = dim.substitute(symbols);
    }
    operands[input.get()] = {.wildcard = static_cast<int>(pattern.wildcards.size())};
    add_value_wildcard(pattern, "x" + std::to_string(input->index), std::move(type));
  }
  if (!pattern.find("n")) add_wildcard(pattern, "n", WildcardKind::dim);
  for (const auto& node : graph.nodes()) {
    PatternNode made{.name = node->name, .op = node->op};
    for (const GraphValue* operand : node->operands)
      made.operands.push_back(operand == nullptr ? PatternOperand() : operands.at(operand));
    NamedAttributes given;
    for (const auto& [key, value] : node->attributes.entries()) {
      given.emplace_back(key, value);
      if (std::holds_alternative<double>(value.storage()) && pattern.wildcards.size() < kMaxWildcards) {
        const std::string name = "v" + std::to_string(pattern.wildcards.size());
        add_wildcard(pattern, name, WildcardKind::real);
        add_condition(pattern, name, Relation::one_of, {value, 7.0});
        given.back().second = Dim::symbol("?" + name);
      } else if (key == "shape") {
        Shape shape = value.as_shape();
        for (Dim& dim : shape) dim = dim.substitute(symbols);
        given.back().second = Attribute::shape(shape);
      }
    }
    made.attributes = complete_attributes(pattern, made.op, given);
    for (const auto& result : node->results) {
      operands[result.get()] = {.node = static_cast<int>(pattern.before.nodes.size()), .result = result->index};
      made.results.push_back({.name = result->name});
      if (result->uses.empty()) pattern.before.results.push_back(operands.at(result.get()));
    }
    pattern.before.nodes.push_back(std::move(made));
  }
  pattern.after.results.assign(pattern.before.results.size(), PatternOperand{.wildcard = 0});
  return pattern;
}

TEST(Pattern, ObeysTheLawsOfTextOnRandomBodies) {
  int legal = 0, typed = 0, conditions = 0;
  check_property(200, [&](const GraphRecipe& recipe) {
    const auto graph = build_graph(recipe, ops());
    graph->set_results({});
    const Pattern pattern = pattern_of(*graph, recipe.inputs % 2 == 0);
    if (broken_rule(pattern)) return;  // without a node, or one that reads off `?n`
    ++legal;
    typed += pattern.wildcards[0].type ? 1 : 0;
    for (const Wildcard& wildcard : pattern.wildcards) conditions += static_cast<int>(wildcard.conditions.size());
    const std::string text = display(pattern), form = canonical(pattern);
    const auto again = parsed(text);
    RC_ASSERT(display(*again) == text);
    RC_ASSERT(canonical(*again) == form);
    RC_ASSERT(canonical(*parsed(form)) == form);
    RC_ASSERT(structural_hash(*again) == structural_hash(pattern));
  });
  EXPECT_GT(std::min({legal, typed, conditions}), 40) << legal << " " << typed << " " << conditions;
}

}  // namespace weft::pattern_test
