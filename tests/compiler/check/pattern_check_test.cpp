// Every pattern of the tree holds bit for bit on samples and edges, and what does not hold is reported.

#include "compiler/check/pattern_check.h"

#include <algorithm>
#include <cstdio>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/parse.h"
#include "ir/pattern_rewrite.h"
#include "ir/pattern_value.h"
#include "ir/print.h"
#include "tests/test_context.h"

namespace weft::pattern_check_test {

const Context& context() {
  static const std::shared_ptr<Context> shared = test_context();
  return *shared;
}

PatternCheck check_of(const std::string& text, bool exact = true) {
  const auto definitions = parse_definitions(text, context().ops, "pattern");
  return check_pattern(*std::get<std::shared_ptr<Pattern>>(definitions.at(0)), context(), exact);
}

std::string pattern(const std::string& header, const std::string& before, const std::string& after) {
  return "pattern p(" + header + ") {\n before {\n" + before + "\n }\n after {\n" + after + "\n }\n}\n";
}

// Whether no condition of the pattern rules the dtype out.
bool takes(const Pattern& pattern, DType dtype) {
  return std::all_of(pattern.wildcards.begin(), pattern.wildcards.end(), [&](const Wildcard& wildcard) {
    return wildcard.kind != WildcardKind::dtype ||
           std::all_of(wildcard.conditions.begin(), wildcard.conditions.end(),
                       [&](const Condition& condition) { return holds(condition, dtype); });
  });
}

TEST(EveryPattern, ComputesTheSameBitsOnSamplesAndEdges) {
  ASSERT_FALSE(context().patterns.empty());
  int samples = 0;
  for (const FusionPattern& entry : context().patterns) {
    const PatternCheck check = check_pattern(entry.pattern, context(), true);
    EXPECT_EQ(check.failure, "") << display(entry.pattern);
    EXPECT_GE(check.samples, 50) << entry.pattern.name;
    EXPECT_EQ(check.exact, check.samples) << entry.pattern.name;
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      if (!takes(entry.pattern, dtype)) continue;
      EXPECT_EQ(std::count(check.dtypes.begin(), check.dtypes.end(), dtype_text(dtype)), 1)
          << entry.pattern.name << " " << dtype_text(dtype);
    }
    samples += check.samples;
  }
  std::printf("count: %zu patterns hold on %d samples\n", context().patterns.size(), samples);
}

TEST(EveryPattern, ReadsBackFromItsText) {
  for (const FusionPattern& entry : context().patterns) {
    const std::string text = display(entry.pattern);
    const auto definitions = parse_definitions(text, context().ops, entry.pattern.name);
    EXPECT_EQ(display(*std::get<std::shared_ptr<Pattern>>(definitions.at(0))), text);
  }
}

// Another op that takes the same values and gives the same types; null when there is none.
const Op* other_op(const Node& node) {
  std::vector<std::optional<Meta>> operands;
  for (const GraphValue* value : node.operands)
    operands.push_back(value == nullptr ? std::nullopt : std::optional(value->meta));
  for (const auto& [name, op] : context().ops.all()) {
    if (name == node.name || op.schema.tensor_count() != node.operands.size()) continue;
    try {
      const std::vector<Meta> metas =
          infer_results(op, context().ops, operands, complete_attributes(op.schema, op.samples[0].attributes));
      bool same = metas.size() == node.results.size();
      for (std::size_t i = 0; i < metas.size() && same; ++i) same = metas[i] == node.results[i]->meta;
      if (same) return &op;
    } catch (const UserError&) {
      continue;
    } catch (const InternalError&) {
      continue;
    }
  }
  return nullptr;
}

// A graph that is one node away from a match says which node.
TEST(EveryPattern, NamesTheNodeThatIsNotAsItShouldBe) {
  int others = 0, shared = 0;
  for (const FusionPattern& entry : context().patterns)
    for (const auto& sample : sample_graphs(entry.pattern, context())) {
      for (std::size_t at = 0; at < sample->nodes().size(); ++at) {
        const auto graph = sample->clone();
        assign_names(*graph);
        Node* node = std::next(graph->nodes().begin(), static_cast<std::ptrdiff_t>(at))->get();
        const std::string op = node->name;
        std::vector<std::string> names;
        for (const auto& result : node->results) names.push_back("%" + result->name);
        SCOPED_TRACE(entry.pattern.name + ": " + display_node(*node));
        ASSERT_EQ(find_pattern(*graph, entry.pattern).matches.size(), 1u);
        if (const Op* other = other_op(*node)) {
          node->name = other->name;
          node->op = other;
          node->attributes = complete_attributes(other->schema, other->samples[0].attributes);
          ++others;
        } else {
          std::vector<GraphValue*> results = graph->results();
          for (const auto& result : node->results)
            if (std::find(results.begin(), results.end(), result.get()) == results.end())
              results.push_back(result.get());
          if (results.size() == graph->results().size()) continue;  // everything it gives is returned anyway
          graph->set_results(results);
          ++shared;
        }
        const PatternFindings findings = find_pattern(*graph, entry.pattern);
        EXPECT_TRUE(findings.matches.empty());
        const bool is_named = std::any_of(findings.misses.begin(), findings.misses.end(), [&](const NearMiss& miss) {
          return miss.reason.find("no " + op) != std::string::npos ||
                 std::any_of(names.begin(), names.end(),
                             [&](const std::string& name) { return miss.reason.find(name) != std::string::npos; });
        });
        EXPECT_TRUE(is_named) << (findings.misses.empty() ? "no near miss" : findings.misses[0].reason);
      }
    }
  EXPECT_GT(others, 0);
  std::printf("count: %d nodes of patterns changed, %d shared\n", others, shared);
}

TEST(PatternCheck, TellsWhatAfterComputesOtherwise) {
  const std::string equal = pattern("?x", "%a = silu(?x)\nreturn %a", "%b = sigmoid(?x)\n%a = mul(?x, %b)\nreturn %a");
  EXPECT_EQ(check_of(equal, false).failure, "");
  EXPECT_NE(check_of(equal, true).failure.find("result 0 of after"), std::string::npos) << "not to the last bit";
  const PatternCheck wrong = check_of(pattern("?x", "%a = silu(?x)\nreturn %a", "%a = sigmoid(?x)\nreturn %a"), false);
  EXPECT_NE(wrong.failure.find("result 0 of after: element 0"), std::string::npos) << wrong.failure;
  EXPECT_NE(wrong.failure.find("with ?x: "), std::string::npos) << wrong.failure;
}

TEST(PatternCheck, TellsTypesThatDiffer) {
  const PatternCheck check = check_of(pattern("?x", "%a = silu(?x)\nreturn %a", "%a = cast(?x, dtype=i32)\nreturn %a"));
  EXPECT_NE(check.failure.find("but after gives i32"), std::string::npos) << check.failure;
}

TEST(PatternCheck, TellsWhenNothingCanBeTried) {
  EXPECT_NE(check_of(pattern("?x: f32[?n, 3000, 5000]", "%a = silu(?x)\nreturn %a", "%a = silu(?x)\nreturn %a"))
                .failure.find("no sample"),
            std::string::npos);
}

TEST(PatternCheck, ChoosesWhatConditionsAsk) {
  const PatternCheck check = check_of(
      "pattern p(?x: ?T[?n, ?d], ?g: int) where ?g in {32, 64} {\n before {\n%q, %s = per_token_group_quant_int8(?x, "
      "group_size=?g)\nreturn %q, %s\n }\n after {\n%n = neg(?x)\n%m = neg(%n)\n%q, %s = "
      "per_token_group_quant_int8(%m, group_size=?g)\nreturn %q, %s\n }\n}\n");
  EXPECT_EQ(check.failure, "");
  EXPECT_GE(check.samples, 3);
}

// Samples are over one rank, where an all-reduce is a copy: that alone would prove anything.
TEST(PatternCheck, TriesWhatIsOverRanksOnThreads) {
  const std::string over = "world_size=?n, group_name=?g", header = "?x, ?n: int, ?g: str";
  const std::string sum = "%a = all_reduce(?x, " + over + ")\nreturn %a";
  const PatternCheck parts = check_of(
      pattern(header, sum,
              "%p = reduce_scatter(?x, dim=0, " + over + ")\n%a = all_gather(%p, dim=0, " + over + ")\nreturn %a"));
  EXPECT_EQ(parts.failure, "");
  EXPECT_GE(parts.samples, 3);
  const PatternCheck copy = check_of(pattern(header, sum, "%a = clone(?x)\nreturn %a"), false);
  EXPECT_NE(copy.failure.find("(rank 0 of 2)"), std::string::npos) << copy.failure;
  const std::string twice = "%a = rank_slice(?x, dim=0, " + over + ")\n%b = all_gather(%a, dim=0, " + over +
                            ")\n%c = all_reduce(?x, " + over + ")\nreturn %b, %c";
  const PatternCheck differs = check_of(pattern(header, twice, sum.substr(0, sum.find('\n')) + "\nreturn ?x, %a"));
  EXPECT_NE(differs.failure.find("result 0 of after"), std::string::npos) << differs.failure;
}

}  // namespace weft::pattern_check_test
