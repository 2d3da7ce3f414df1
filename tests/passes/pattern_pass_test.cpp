// When a fusion is made, and when not.

#include "passes/pattern_pass.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "compiler/check/expected_fusions.h"
#include "compiler/check/pattern_findings.h"
#include "compiler/pipeline.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::pattern_pass_test {

constexpr const char* kGraph = R"(graph g(%x: f32[s0, 128]) stage=pure where s0 in [1, 8] {
  %a = silu_and_mul(%x)
  %q, %s = per_token_group_quant_int8(%a, group_size=32)
  return %q, %s
}
)";

constexpr const char* kPattern = R"(pattern doubled(?x) {
  before {
    %a = add(?x, ?x)
    return %a
  }
  after {
    %a = mul_scalar(?x, value=2.0)
    return %a
  }
}
)";

PatternReport report_of(const Context& context, const std::string& pattern, const std::string& text = kGraph) {
  const auto graph = parse_graph(text, context.ops);
  PassContext passes = pass_context(context, {1, 8});
  PassRunnerOptions options;
  options.stop_after = Stage::pure;
  for (const PassRecord& record : run_passes(*graph, passes, passes_of(context), options))
    for (const PatternReport& report : record.result.patterns)
      if (report.pattern == pattern) return report;
  throw std::runtime_error("no pass looked for " + pattern);
}

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "weft_patterns.graph";
  std::ofstream(path) << text;
  return path;
}

std::shared_ptr<Context> with_patterns(const std::string& text) {
  Options options;
  options.threads = 1;
  options.patterns = {written(text)};
  return make_context(std::move(options));
}

const char* const kFused = "silu_and_mul_per_token_group_quant_int8";

TEST(PatternPass, FusesWhereAKernelComputesTheWhole) {
  const auto context = test_context();
  const PatternReport report = report_of(*context, kFused);
  EXPECT_EQ(report.matched, 1);
  EXPECT_EQ(report.off, std::nullopt);
}

TEST(PatternPass, SaysWhichOptionSwitchesItOff) {
  Options options;
  options.fuse_act_quant = false;
  const auto context = make_context(std::move(options));
  const PatternReport report = report_of(*context, kFused);
  EXPECT_EQ(report.matched, 0);
  EXPECT_EQ(report.off, "-cc.pass_config.fuse_act_quant is false");
}

TEST(PatternPass, LeavesAPartForWhichTheUserNamedAProvider) {
  const auto context = test_context();
  {
    const PriorityScope scope(*context, "silu_and_mul", {"reference"});
    const PatternReport report = report_of(*context, kFused);
    EXPECT_EQ(report.matched, 0);
    ASSERT_EQ(report.near_misses.size(), 1u);
    EXPECT_EQ(report.near_misses[0].reason, "--ir-op-priority.silu_and_mul decides who computes it");
    const PriorityScope whole(*context, kFused, {"reference"});
    EXPECT_EQ(report_of(*context, kFused).matched, 1) << "who computes the whole is named, too";
  }
  EXPECT_EQ(report_of(*context, kFused).matched, 1);
}

TEST(PatternPass, FusesAPartWhoseListBeginsWithFused) {
  const auto context = test_context();
  const PriorityScope scope(*context, "silu_and_mul", {"fused", "native"});
  EXPECT_EQ(report_of(*context, kFused).matched, 1);
  EXPECT_EQ(context->priorities.list("silu_and_mul").front(), "native");
  EXPECT_NE(message_of([&] {
              PriorityScope(*context, "silu_and_mul", {"cpu", "fused"});
            }).find("fused as the first"),
            std::string::npos);
}

TEST(PatternPass, LeavesWhatNoKernelWouldCompute) {
  const auto context = test_context();
  const std::string wide =
      "graph g(%x: f64[s0, 128]) stage=pure where s0 in [1, 8] {\n  %a = silu_and_mul(%x)\n  %q, "
      "%s = per_token_group_quant_int8(%a, group_size=32)\n  return %q, %s\n}\n";
  const PatternReport report = report_of(*context, kFused, wide);
  EXPECT_EQ(report.matched, 0);
  ASSERT_EQ(report.near_misses.size(), 1u);
  EXPECT_EQ(report.near_misses[0].reason.find("no kernel computes"), 0u) << report.near_misses[0].reason;
}

TEST(PatternPass, SaysWhichSchemesAnAttributeShutsOut) {
  const auto context = test_context();
  const auto reason_of = [&](const std::string& quantization, const std::string& pattern) {
    const PatternReport report =
        report_of(*context, pattern,
                  "graph g(%x: bf16[s0, 384]) stage=pure where s0 in [1, 8] {\n  %a = silu_and_mul(%x)\n  %q, %s = " +
                      quantization + "\n  return %q, %s\n}\n");
    EXPECT_EQ(report.matched, 0);
    return report.near_misses.empty() ? "" : report.near_misses[0].reason;
  };
  EXPECT_EQ(reason_of("per_token_group_quant_fp8(%a, group_size=96)", "silu_and_mul_per_token_group_quant_fp8"),
            "%q: group_size is 96, wanted 64 or 128");
  EXPECT_EQ(reason_of("per_token_group_quant_int8(%a, group_size=96)", kFused),
            "%q: group_size is 96, wanted 32, 64 or 128");
  EXPECT_EQ(reason_of("dynamic_per_token_scaled_fp8_quant(%a, dtype=f8e4m3fnuz)",
                      "silu_and_mul_dynamic_per_token_scaled_fp8_quant"),
            "%q: dtype is f8e4m3fnuz, wanted f8e4m3");
}

// Query and key of a layer, rotated, and the key in its pages.
constexpr const char* kRotation = R"(graph g(%positions: i64[s0], %q: f32[s0, 64], %k: f32[s0, 64], %v: f32[s0, 2, 32],
    %table: f32[64, 32], %kv: kv[f16, block=16, heads=2, head_dim=32], %slots: i64[s0]) stage=pure where s0 in [1, 8] {
  %qt, %kt = rotary_embedding(%positions, %q, %k, %table, head_size=32, rotary_dim=32)
  %kh = reshape(%kt, shape=[s0, 2, 32])
  %pages = kv_cache_update(%kh, %v, %kv, %slots)
  return %qt, %pages
}
)";

TEST(PatternPass, SaysThatARangeIsBeyondTheLimitOfItsFusion) {
  const auto off = [](std::int64_t most) {
    const auto context = test_context();
    context->options.rope_kvcache_fusion_max_token_num = most;
    const PatternReport report = report_of(*context, "fused_rope_kv_cache_update", kRotation);
    EXPECT_EQ(report.matched, report.off ? 0 : 1);
    return report.off.value_or("");
  };
  EXPECT_EQ(off(0), "") << "no limit";
  EXPECT_EQ(off(8), "");
  EXPECT_EQ(off(7), "range ends at 8, rope_kvcache_fusion_max_token_num is 7");
}

TEST(PatternPass, LeavesThePartsWhereTheGraphIsCutAtOne) {
  const auto context = test_context();
  const auto cut_at = [&](const char* op) { context->options.splitting_ops = {"attention", op}; };
  cut_at("kv_cache_update");
  EXPECT_EQ(report_of(*context, "fused_rope_kv_cache_update", kRotation).off,
            "-cc.splitting_ops cuts the graph at kv_cache_update, and the rotation is before the cut");
  cut_at("vllm::unified_kv_cache_update");
  EXPECT_NE(report_of(*context, "fused_rope_kv_cache_update", kRotation).off, std::nullopt);
  cut_at("rotary_embedding");
  const PatternReport report = report_of(*context, "fused_rope_kv_cache_update", kRotation);
  EXPECT_EQ(report.matched, 0);
  ASSERT_EQ(report.near_misses.size(), 1u);
  EXPECT_EQ(report.near_misses[0].reason, "-cc.splitting_ops cuts the graph at rotary_embedding");
}

TEST(PatternPass, NamesAPatternOrAFusion) {
  const auto context = test_context();
  EXPECT_EQ(patterns_named(context->patterns, "act_quant").size(), 36u);
  EXPECT_EQ(patterns_named(context->patterns, kFused).size(), 1u);
  EXPECT_EQ(patterns_named(context->patterns, "").size(), context->patterns.size());
  EXPECT_NE(message_of([&] { patterns_named(context->patterns, "act_quan"); }).find("did you mean \"act_quant\"?"),
            std::string::npos);
  const std::string far = message_of([&] { patterns_named(context->patterns, "fuse_norm_quant"); });
  EXPECT_NE(far.find("there are act_quant, add_rms_norm, "), std::string::npos) << far;
  EXPECT_NE(far.find(", rms_quant, "), std::string::npos) << far;
}

TEST(PatternFile, IsAppliedBeforeTheProgramsOwnPatterns) {
  const auto context = with_patterns(kPattern);
  const PatternReport report = report_of(*context, "doubled",
                                         "graph g(%x: f32[s0, 64]) stage=pure where s0 in [1, 8] {\n  %a = add(%x, "
                                         "%x)\n  return %a\n}\n");
  EXPECT_EQ(report.matched, 1);
  EXPECT_EQ(context->patterns.back().fusion, "custom");
}

TEST(PatternFile, IsRefusedWithTheReasonWhereItDoesNotHold) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kPattern;
    text.replace(text.find(from), from.size(), to);
    return message_of([&] { with_patterns(text); });
  };
  EXPECT_EQ(changed("value=2.0", "value=2.0"), "");
  EXPECT_NE(changed("value=2.0", "value=2.5").find("[pattern] doubled does not hold: result 0 of after: element 0"),
            std::string::npos);
  EXPECT_NE(changed("mul_scalar(?x, value=2.0)", "cast(?x, dtype=i32)").find("but after gives i32"), std::string::npos);
  EXPECT_NE(changed("mul_scalar", "mul_scaler").find("[mul_scaler] is not an op of this program"), std::string::npos);
  EXPECT_NE(changed("before {", "bevore {").find("before"), std::string::npos);
  EXPECT_NE(message_of([] { with_patterns(std::string(kPattern) + kPattern); }).find("doubled"), std::string::npos);
  EXPECT_NE(message_of([] { with_patterns(kGraph); }).find("patterns alone"), std::string::npos);
  Options missing;
  missing.patterns = {"/nowhere/patterns.graph"};
  EXPECT_NE(message_of([&] { make_context(missing); }).find("/nowhere/patterns.graph"), std::string::npos);
}

TEST(PatternFile, MayNotTakeTheNameOfAPatternOfTheProgram) {
  std::string text = kPattern;
  text.replace(text.find("doubled"), 7, kFused);
  EXPECT_NE(message_of([&] { with_patterns(text); }).find("is there already"), std::string::npos);
}

std::vector<CompileRecord> records_of(const Context& context) {
  const auto graph = parse_graph(kGraph, context.ops);
  return compile_ranges(*graph, context, {{1, 4}, {5, 8}}, {}).records;
}

TEST(ExpectedFusions, AreHeldAgainstEveryRange) {
  const auto context = test_context();
  const std::vector<CompileRecord> records = records_of(*context);
  const auto check = [&](const std::string& text, const ExpectedFusions& declared = {}) {
    return message_of(
        [&] { check_expected_fusions(parse_expected_fusions(text, *context, declared), *context, records); });
  };
  EXPECT_EQ(check("act_quant=1"), "");
  EXPECT_EQ(check(std::string(kFused) + "=1,rms_quant=0"), "");
  EXPECT_EQ(check("all", {{"act_quant", 1}}), "");
  EXPECT_NE(check("all", {{"rms_quant", 2}}).find("wanted 2 of rms_quant, but 0 matched"), std::string::npos);
  EXPECT_NE(check("act_quant=2").find("wanted 2 of act_quant, but 1 matched"), std::string::npos);
  EXPECT_NE(check("act_quent=1").find("did you mean \"act_quant\"?"), std::string::npos);
  EXPECT_NE(check("act_quant").find("wanted NAME=COUNT"), std::string::npos);
  EXPECT_NE(check("act_quant=-1"), "");
  EXPECT_NE(check("act_quant=x"), "");
  EXPECT_NE(check("act_quant=1,act_quant=1").find("twice"), std::string::npos);
}

TEST(FindAsCompiled, LooksWhereThePassWould) {
  const auto context = test_context();
  const auto graph = parse_graph(
      "graph g(%x: f32[s0, 64], %r: f32[s0, 64], param %w: f32[64]) stage=traced where s0 in [1, 8] {\n"
      "  %s = add(%x, %r)\n  %y = rms_norm(%s, %w, epsilon=1e-5)\n  %q, %d = per_token_group_quant_int8(%y, "
      "group_size=32)\n  return %q, %d, %s\n}\n",
      context->ops);
  const auto find = [&](const std::string& name) {
    return find_as_compiled(*graph, *patterns_named(context->patterns, name).at(0), *context, {1, 8});
  };
  EXPECT_EQ(find("add_rms_norm").matches, std::vector<std::string>{"y"});
  EXPECT_EQ(find("fused_add_rms_norm_per_token_group_quant_int8").matches, std::vector<std::string>{"q"});
  const PatternFindings other = find("rms_norm_per_token_group_quant_int8");
  EXPECT_TRUE(other.matches.empty());
  ASSERT_EQ(other.misses.size(), 1u);
  EXPECT_EQ(other.misses[0].reason, "%y: is fused_add_rms_norm, wanted rms_norm");
  EXPECT_EQ(other.misses[0].kind, FailedAttempt::Kind::other) << "only the quantization was found";
}

PatternFindings findings_of(const Context& context, const std::string& body) {
  const auto graph =
      parse_graph("graph g(%x: bf16[s0, 256]) stage=pure where s0 in [1, 8] {\n" + body + "}\n", context.ops);
  return find_as_compiled(*graph, *patterns_named(context.patterns, "silu_and_mul_per_token_group_quant_fp8").at(0),
                          context, {1, 8});
}

// Views that undo each other are removed, and a written-out meaning is its op again, before the fusion looks.
TEST(FindAsCompiled, MatchesWhereTheCompilerFuses) {
  const auto context = test_context();
  const char* const bodies[] = {
      "%a = silu_and_mul(%x)\n%b = reshape(%a, shape=[s0, 2, 64])\n%c = reshape(%b, shape=[s0, 128])\n"
      "%q, %s = per_token_group_quant_fp8(%c, group_size=128)\nreturn %q, %s\n",
      "%l = slice(%x, dim=-1, start=0, end=128)\n%r = slice(%x, dim=-1, start=128, end=256)\n%i = silu(%l)\n"
      "%a = mul(%i, %r)\n%q, %s = per_token_group_quant_fp8(%a, group_size=64)\nreturn %q, %s\n"};
  for (const char* body : bodies) EXPECT_EQ(findings_of(*context, body).matches, std::vector<std::string>{"q"}) << body;
}

// The form of a pattern with a cast matches nothing where the form without it matches.
TEST(FindAsCompiled, HasNoNearMissWhereAnotherPatternOfTheFusionMatches) {
  const auto context = test_context();
  const auto graph = parse_graph(
      "graph g(%x: bf16[s0, 256]) stage=pure where s0 in [1, 8] {\n%a = silu_and_mul(%x)\n"
      "%q, %s = per_token_group_quant_fp8(%a, group_size=64)\nreturn %q, %s\n}\n",
      context->ops);
  const auto* wide = patterns_named(context->patterns, "silu_and_mul_per_token_group_quant_fp8_wide").at(0);
  const PatternFindings findings = find_as_compiled(*graph, *wide, *context, {1, 8});
  for (const FailedAttempt& miss : findings.misses) EXPECT_NE(miss.kind, FailedAttempt::Kind::near) << miss.reason;
}

TEST(FindAsCompiled, ReportsWhatRaiseAlmostRecovers) {
  const auto context = test_context();
  const auto graph = parse_graph(
      "graph g(%x: bf16[s0, 128]) stage=pure where s0 in [1, 8] {\n%f = cast(%x, dtype=f32)\n"
      "%r = reshape(%f, shape=[s0, 2, 64])\n%b = abs(%r)\n%m = amax(%b)\n%c = clamp(%m, min=1e-10)\n"
      "%s = div_scalar(%c, value=440.0)\n%d = div(%r, %s)\n%q = cast(%d, dtype=f8e4m3)\n"
      "%q2 = reshape(%q, shape=[s0, 128])\n%s2 = reshape(%s, shape=[s0, 2])\nreturn %q2, %s2\n}\n",
      context->ops);
  const CompiledFindings found = find_as_compiled(*graph, std::span<const Pattern* const>(), *context, {1, 8});
  ASSERT_EQ(found.others.size(), 1u);
  EXPECT_EQ(found.others[0].pattern, "per_token_group_quant_fp8");
  ASSERT_EQ(found.others[0].near_misses.size(), 1u);
  EXPECT_NE(found.others[0].near_misses[0].reason.find("440, wanted 448"), std::string::npos);
}

TEST(FindAsCompiled, HasANearMissOnceAndTheReasonOfARefusal) {
  using Kind = FailedAttempt::Kind;
  const auto context = test_context();
  const PatternFindings shared =
      findings_of(*context,
                  "%a = silu_and_mul(%x)\n%q, %s = per_token_group_quant_fp8(%a, group_size=64)\n"
                  "%n = neg(%a)\nreturn %q, %s, %n\n");
  ASSERT_EQ(shared.misses.size(), 2u);
  EXPECT_EQ(shared.misses[0].kind, Kind::inner) << "silu_and_mul is a part of the near miss";
  EXPECT_EQ(shared.misses[1].kind, Kind::near);
  EXPECT_EQ(shared.misses[1].reason, "%a: is also used by %n (neg)");
  const std::string whole =
      "%a = silu_and_mul(%x)\n%q, %s = per_token_group_quant_fp8(%a, group_size=64)\n"
      "return %q, %s\n";
  context->options.limit_rewrites = {"act_quant=0"};
  const PatternFindings refused = findings_of(*context, whole);
  EXPECT_TRUE(refused.matches.empty()) << "the compiler does not replace it";
  ASSERT_EQ(refused.misses.size(), 1u);
  EXPECT_EQ(refused.misses[0].reason, kHeldBack);
  EXPECT_EQ(refused.misses[0].kind, Kind::near);
  context->options.fuse_act_quant = false;
  EXPECT_NE(findings_of(*context, whole).off.value_or("").find("fuse_act_quant is false"), std::string::npos);
}

}  // namespace weft::pattern_pass_test
