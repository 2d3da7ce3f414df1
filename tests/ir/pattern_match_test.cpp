// Matches of a pattern, and the report about near matches.

#include "ir/pattern_match.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/pattern_rewrite.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace weft::pattern_match_test {

const OpTable& ops() {
  static const OpTable table = make_op_table();
  return table;
}

Pattern pattern_of(const std::string& text) {
  return *std::get<std::shared_ptr<Pattern>>(parse_definitions(text, ops(), "pattern").at(0));
}

struct Outcome {
  std::string text;
  PatternReport report;
  std::int64_t visits = 0;
};

Outcome rewritten(const std::string& graph_text, const std::vector<Pattern>& patterns,
                  const RewriteFilter& filter = {}) {
  const auto graph = parse_graph(graph_text, ops());
  std::vector<const Pattern*> pointers;
  for (const Pattern& pattern : patterns) pointers.push_back(&pattern);
  Outcome outcome;
  outcome.report = rewrite_all(*graph, pointers, ops(), filter, &outcome.visits)[0];
  EXPECT_EQ(find_breach(*graph, ops()), std::nullopt) << display(*graph);
  outcome.text = display(*graph);
  return outcome;
}

Outcome rewritten(const std::string& graph_text, const std::string& pattern_text) {
  return rewritten(graph_text, {pattern_of(pattern_text)});
}

// The reasons of all near misses, one a line, as NODE: REASON.
std::string near(const Outcome& outcome) {
  std::string text;
  for (const NearMiss& miss : outcome.report.near_misses) text += miss.node + " " + miss.reason + "\n";
  return text;
}

std::string graph_of(const std::string& body, const std::string& inputs = "%x: f32[s0, 64], %r: f32[s0, 64]") {
  return "graph g(" + inputs + ", param %w: f32[64]) stage=pure {\n" + body + "}\n";
}

constexpr const char* kAddNorm = R"(pattern add_norm(?x, ?r, ?w, ?e: float) where ?e > 0.0 {
  before {
    %s = add(?x, ?r)
    %y = rms_norm(%s, ?w, epsilon=?e)
    return %y, %s
  }
  after {
    %y, %s = fused_add_rms_norm(?x, ?r, ?w, epsilon=?e, intermediate=input_dtype)
    return %y, %s
  }
}
)";

constexpr const char* kActQuant = R"(pattern act_quant(?x, ?g: int) where ?g in {32, 64} {
  before {
    %a = silu(?x)
    %q, %s = per_token_group_quant_int8(%a, group_size=?g)
    return %q, %s
  }
  after {
    %n = neg(?x)
    %q, %s = per_token_group_quant_int8(%n, group_size=?g)
    return %q, %s
  }
}
)";

TEST(PatternMatch, ReplacesWhatItFindsAndKeepsNames) {
  const Outcome outcome = rewritten(graph_of("%sum = add(%x, %r)\n%y = rms_norm(%sum, %w, epsilon=1e-5)\n"
                                             "return %y, %sum\n"),
                                    kAddNorm);
  EXPECT_EQ(outcome.report.matched, 1);
  EXPECT_EQ(near(outcome), "");
  EXPECT_NE(outcome.text.find("%y: f32[s0, 64], %sum: f32[s0, 64] = fused_add_rms_norm(%x, %r, %w, epsilon=1e-05, "
                              "intermediate=input_dtype)"),
            std::string::npos)
      << outcome.text;
  EXPECT_EQ(outcome.text.find(" add("), std::string::npos) << outcome.text;
}

TEST(PatternMatch, TakesCommutedOperandsWhereTheOtherOrderDoesNotFit) {
  const std::string text = R"(pattern p(?x, ?y) {
  before {
    %a = silu(?x)
    %m = mul(%a, ?y)
    return %m
  }
  after {
    %m = add(?x, ?y)
    return %m
  }
}
)";
  for (const char* product : {"mul(%a, %r)", "mul(%r, %a)"})
    EXPECT_EQ(rewritten(graph_of(std::string("%a = silu(%x)\n%m = ") + product + "\nreturn %m\n"), text).report.matched,
              1)
        << product;
  // An op that is not commutative has one order.
  std::string ordered = text;
  ordered.replace(ordered.find("mul("), 4, "sub(");
  EXPECT_EQ(rewritten(graph_of("%a = silu(%x)\n%m = sub(%r, %a)\nreturn %m\n"), ordered).report.matched, 0);
}

TEST(PatternMatch, LeavesWhatSomebodyElseReads) {
  const Outcome used = rewritten(graph_of("%a = silu(%x)\n%q, %s = per_token_group_quant_int8(%a, group_size=32)\n"
                                          "%b = neg(%a)\nreturn %q, %s, %b\n"),
                                 kActQuant);
  EXPECT_EQ(used.report.matched, 0);
  EXPECT_EQ(near(used), "q %a: is also used by %b (neg)\n");
  const Outcome returned = rewritten(graph_of("%a = silu(%x)\n%q, %s = per_token_group_quant_int8(%a, group_size=32)\n"
                                              "return %q, %s, %a\n"),
                                     kActQuant);
  EXPECT_EQ(near(returned), "q %a: is returned by the graph\n");
}

TEST(PatternMatch, SaysWhichAttributeIsNotAsWanted) {
  const Outcome group = rewritten(graph_of("%a = silu(%x)\n%q, %s = per_token_group_quant_int8(%a, group_size=16)\n"
                                           "return %q, %s\n"),
                                  kActQuant);
  EXPECT_EQ(near(group), "q %q: group_size is 16, wanted 32 or 64\n");
  const Outcome literal = rewritten(graph_of("%a = silu(%x)\n%q, %s = per_token_group_quant_int8(%a, group_size=32, "
                                             "rounding=toward_zero)\nreturn %q, %s\n"),
                                    kActQuant);
  EXPECT_EQ(near(literal), "q %q: rounding is toward_zero, wanted nearest\n");
  const Outcome epsilon =
      rewritten(graph_of("%t = add(%x, %r)\n%y = rms_norm(%t, %w, epsilon=-1.0)\nreturn %y, %t\n"), kAddNorm);
  EXPECT_EQ(near(epsilon), "y %y: epsilon is -1.0, wanted > 0.0\n");
}

TEST(PatternMatch, BindsAWildcardOnce) {
  const std::string square =
      "pattern p(?x) {\n before {\n  %a = silu(?x)\n  %m = mul(%a, ?x)\n  return %m\n }\n"
      " after {\n  %m = neg(?x)\n  return %m\n }\n}\n";
  EXPECT_EQ(rewritten(graph_of("%a = silu(%x)\n%m = mul(%a, %x)\nreturn %m\n"), square).report.matched, 1);
  const Outcome other = rewritten(graph_of("%a = silu(%x)\n%m = mul(%a, %r)\nreturn %m\n"), square);
  EXPECT_EQ(near(other), "m %m: is given %r as ?x, which is %x elsewhere in the pattern\n");
}

TEST(PatternMatch, ReadsTypesAndExpressionsOverThem) {
  const std::string typed = R"(pattern p(?x: ?T[?n, ?d], ?k: int) where ?T in {f32, bf16} {
  before {
    %h = slice(?x, dim=-1, start=0, end=?k)
    %y: ?T[?n, ?k] = silu(%h)
    return %y
  }
  after {
    %h = slice(?x, dim=-1, start=?d - ?k, end=?d)
    %y = silu(%h)
    return %y
  }
}
)";
  const Outcome half =
      rewritten(graph_of("%h = slice(%x, dim=-1, start=0, end=24)\n%y = silu(%h)\nreturn %y\n"), typed);
  EXPECT_EQ(half.report.matched, 1) << near(half);
  EXPECT_NE(half.text.find("start=40, end=64"), std::string::npos) << half.text;
  const Outcome other = rewritten(
      graph_of("%h = slice(%x, dim=-1, start=0, end=24)\n%y = silu(%h)\nreturn %y\n", "%x: f16[s0, 64]"), typed);
  EXPECT_EQ(near(other), "y %x: is f16[s0, 64], wanted ?T[?n, ?d]\n");
}

TEST(PatternMatch, LooksThroughViewsThatChangeNothing) {
  const Outcome outcome = rewritten(graph_of("%a = silu(%x)\n%v = reshape(%a, shape=[s0, 64])\n"
                                             "%q, %s = per_token_group_quant_int8(%v, group_size=32)\nreturn %q, %s\n"),
                                    kActQuant);
  EXPECT_EQ(outcome.report.matched, 1) << near(outcome);
  EXPECT_EQ(outcome.text.find("reshape"), std::string::npos) << outcome.text;
}

TEST(PatternMatch, MovesBehindTheMatchWhatReadsAnEarlierResult) {
  const Outcome outcome = rewritten(graph_of("%sum = add(%x, %r)\n%m = neg(%sum)\n%k = silu(%m)\n"
                                             "%y = rms_norm(%sum, %w, epsilon=1e-5)\nreturn %y, %k\n"),
                                    kAddNorm);
  EXPECT_EQ(outcome.report.matched, 1) << near(outcome);
}

TEST(PatternMatch, RefusesAMatchThatWouldReadItself) {
  const Outcome outcome =
      rewritten(graph_of("%sum = add(%x, %r)\n%f = slice(%sum, dim=0, start=0, end=1)\n%v = reshape(%f, shape=[64])\n"
                         "%y = rms_norm(%sum, %v, epsilon=1e-5)\nreturn %y\n",
                         "%x: f32[4, 64], %r: f32[4, 64]"),
                kAddNorm);
  EXPECT_EQ(outcome.report.matched, 0);
  EXPECT_EQ(near(outcome), "y %v: is computed from what the match gives, and goes into %y\n");
}

// The new node would read what is removed.
TEST(PatternMatch, RefusesAWildcardThatIsAResultOfTheMatch) {
  const std::string pattern =
      "pattern difference(?x, ?w) {\n  before {\n    %n = neg(?x)\n    %y = add(%n, ?w)\n    return %y\n  }\n"
      "  after {\n    %y = sub(?w, ?x)\n    return %y\n  }\n}\n";
  for (const std::string other : {"%n", "%v"}) {
    const std::string view = other == "%v" ? "%v = reshape(%n, shape=[s0, 64])\n" : "";
    const Outcome outcome =
        rewritten(graph_of("%n = neg(%x)\n" + view + "%y = add(%n, " + other + ")\nreturn %y\n"), pattern);
    EXPECT_EQ(outcome.report.matched, 0);
    EXPECT_NE(near(outcome).find(other + ": is ?w, too, and a result of neg"), std::string::npos) << near(outcome);
  }
}

TEST(PatternMatch, LeavesWhatAfterDoesNotFit) {
  const Outcome broadcast =
      rewritten(graph_of("%sum = add(%x, %r)\n%y = rms_norm(%sum, %w, epsilon=1e-5)\nreturn %y, %sum\n",
                         "%x: f32[s0, 64], %r: f32[1, 64]"),
                kAddNorm);
  EXPECT_EQ(broadcast.report.matched, 0);
  EXPECT_NE(near(broadcast).find("x_residual must match x"), std::string::npos) << near(broadcast);
}

TEST(PatternMatch, FindsOverlappingCandidatesFromTheEnd) {
  const std::string twice =
      "pattern p(?x) {\n before {\n  %a = neg(?x)\n  %b = neg(%a)\n  return %b\n }\n"
      " after {\n  %b = silu(?x)\n  return %b\n }\n}\n";
  const Outcome outcome = rewritten(graph_of("%a = neg(%x)\n%b = neg(%a)\n%c = neg(%b)\nreturn %c\n"), twice);
  EXPECT_EQ(outcome.report.matched, 1);
  EXPECT_NE(outcome.text.find("%a: f32[s0, 64] = neg(%x)\n  %c: f32[s0, 64] = silu(%a)"), std::string::npos)
      << outcome.text;
}

TEST(PatternMatch, FindsASecondEndThroughWhatTheFirstReads) {
  const std::string pair = R"(pattern p(?x) {
  before {
    %a = silu(?x)
    %b = neg(%a)
    %c = abs(%a)
    return %b, %c
  }
  after {
    %b = neg(?x)
    %c = silu(?x)
    return %b, %c
  }
}
)";
  const std::string graph = "%a = silu(%x)\n%c = abs(%a)\n%b = neg(%a)\nreturn %b, %c\n";
  EXPECT_EQ(rewritten(graph_of(graph), pair).report.matched, 1);
  const Outcome lone = rewritten(graph_of("%a = silu(%x)\n%c = abs(%a)\nreturn %c\n"), pair);
  EXPECT_EQ(near(lone), "c %a: no neg that fits reads it\n");
}

TEST(PatternMatch, KeepsTheOrderOfPatternsThatBeginAlike) {
  const std::string first =
      "pattern first(?x) {\n before {\n  %a = neg(?x)\n  return %a\n }\n after {\n  %a = silu(?x)\n"
      "  return %a\n }\n}\n";
  std::string second = first;
  second.replace(second.find("first"), 5, "other").replace(second.find("silu"), 4, "abs_");
  second.erase(second.find("abs_") + 3, 1);
  const Outcome outcome = rewritten(graph_of("%a = neg(%x)\nreturn %a\n"), {pattern_of(first), pattern_of(second)});
  EXPECT_NE(outcome.text.find("silu"), std::string::npos) << outcome.text;
}

TEST(PatternMatch, AsksBeforeItReplaces) {
  const RewriteFilter never = [](const Pattern&, const PatternMatch&, std::span<const PlannedCall> calls) {
    return "not " + calls[0].op->name + " " + calls[0].results[0].text();
  };
  const Outcome outcome =
      rewritten(graph_of("%a = silu(%x)\n%q, %s = per_token_group_quant_int8(%a, group_size=32)\nreturn %q, %s\n"),
                {pattern_of(kActQuant)}, never);
  EXPECT_EQ(outcome.report.matched, 0);
  EXPECT_EQ(near(outcome), "q not neg f32[s0, 64]\n");
}

// Trying every order of a sum of twenty terms would take too long.
TEST(PatternMatch, GivesUpWhereThereAreTooManyWays) {
  std::string pattern = "pattern p(?x, ?y) {\n before {\n  %a0 = add(?x, ?y)\n", body = "%a0 = add(%x, %r)\n";
  for (int i = 1; i < 24; ++i) {
    const std::string line = fmt::format("%a{0} = add(%a{1}, %a{1})\n", i, i - 1);
    pattern += line;
    body += line;
  }
  pattern += "  %z = silu(?y)\n  %b = sub(%a23, %z)\n  return %b\n }\n after {\n  %b = neg(?x)\n  return %b\n }\n}\n";
  const Outcome outcome = rewritten(graph_of(body + "%z = silu(%w)\n%b = sub(%a23, %z)\nreturn %b\n"), pattern);
  EXPECT_EQ(outcome.report.matched, 0);
  EXPECT_LE(outcome.visits, 30'000);
}

// The number of visited nodes grows with the graph, for any length.
TEST(PatternMatch, LooksAtAFewNodesForEachOfTheGraph) {
  for (const int layers : {4, 80, 400}) {
    std::string body;
    std::string last = "%x";
    for (int i = 0; i < layers; ++i) {
      const std::string n = std::to_string(i);
      body += "%s" + n + " = add(" + last + ", %r)\n%n" + n + " = rms_norm(%s" + n + ", %w, epsilon=1e-5)\n%a" + n +
              " = silu(%n" + n + ")\n%m" + n + " = mul(%a" + n + ", %s" + n + ")\n";
      last = "%m" + n;
    }
    const Outcome outcome = rewritten(graph_of(body + "return " + last + "\n"), kAddNorm);
    EXPECT_EQ(outcome.report.matched, layers);
    EXPECT_LE(outcome.visits, 30 * 4 * layers);
    EXPECT_GE(outcome.visits, 2 * layers);
  }
}

// A near match with one wrong node is reported, for any node.
TEST(FindPattern, NamesTheNodeThatIsAnother) {
  const Pattern pattern = pattern_of(kAddNorm);
  const std::pair<const char*, const char*> cases[] = {
      {"%t = sub(%x, %r)\n%y = rms_norm(%t, %w, epsilon=1e-5)\nreturn %y, %t\n", "y %t: is sub, wanted add\n"},
      {"%t = add(%x, %r)\n%y = mul(%t, %w)\nreturn %y, %t\n", "t %t: no rms_norm that fits reads it\n"}};
  for (const auto& [body, wanted] : cases) {
    const auto graph = parse_graph(graph_of(body), ops());
    std::string text;
    for (const NearMiss& miss : find_pattern(*graph, pattern).misses) text += miss.node + " " + miss.reason + "\n";
    EXPECT_EQ(text, wanted);
  }
}

TEST(FindPattern, SaysWhichAttemptsAreNear) {
  using Kind = FailedAttempt::Kind;
  const Pattern pattern = pattern_of(kAddNorm);
  const auto graph = parse_graph(graph_of("%t = add(%x, %r)\n%y = rms_norm(%t, %w, epsilon=1e-5)\n%u = sub(%x, %r)\n"
                                          "%z = rms_norm(%u, %w, epsilon=1e-5)\n%v = add(%u, %z)\n"
                                          "%n = rms_norm(%v, %w, epsilon=0.0)\nreturn %y, %z, %n\n"),
                                 ops());
  const PatternFindings findings = find_pattern(*graph, pattern);
  std::vector<std::pair<std::string, Kind>> kinds;
  for (const FailedAttempt& miss : findings.misses) kinds.emplace_back(miss.node, miss.kind);
  EXPECT_EQ(findings.matches, std::vector<std::string>{"y"});
  EXPECT_EQ(kinds,
            (std::vector<std::pair<std::string, Kind>>{{"z", Kind::other}, {"v", Kind::inner}, {"n", Kind::near}}));
}

}  // namespace weft::pattern_match_test
