// A quantization that is almost one of a scheme is reported with what differs from the scheme.

#include "passes/written_quantization.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "compiler/run/sample_call.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/trace.h"
#include "passes/all.h"
#include "passes/equal_spellings.h"
#include "tests/test_context.h"

namespace weft::written_quantization_test {

// The parts of a quantization of bf16[6, 128] by groups of 64.
struct Parts {
  std::string scale, codes;
  std::string values = "%f = cast(%x, dtype=f32)\n%r = reshape(%f, shape=[6, 2, 64])\n%b = abs(%r)\n%m = amax(%b)\n";
  std::string give = "%q2 = reshape(%q, shape=[6, 128])\n%s2 = reshape(%s, shape=[6, 2])\nreturn %q2, %s2\n";

  std::string text() const {
    return "graph g(%x: bf16[6, 128]) stage=pure {\n" + values + scale + codes + give + "}\n";
  }
};

const Parts kFp8 = {"%c = clamp(%m, min=1e-10)\n%s = div_scalar(%c, value=448.0)\n",
                    "%d = div(%r, %s)\n%e = clamp(%d, min=-448.0, max=448.0)\n%q = cast(%e, dtype=f8e4m3)\n"};
const Parts kInt8 = {
    "%c = clamp(%m, min=1e-10)\n%s = div_scalar(%c, value=127.0)\n",
    "%d = div(%r, %s)\n%e = clamp(%d, min=-128.0, max=127.0)\n%n = round(%e)\n%q = cast(%n, dtype=i8)\n"};

// `parts` with the text `from`, which it must have, replaced.
Parts with(Parts parts, const std::string& from, const std::string& to) {
  int found = 0;
  for (std::string* part : {&parts.values, &parts.scale, &parts.codes, &parts.give})
    if (const std::size_t at = part->find(from); at != std::string::npos) {
      part->replace(at, from.size(), to);
      ++found;
    }
  EXPECT_GT(found, 0) << from;
  return parts;
}

class WrittenQuantization : public testing::Test {
 protected:
  WrittenQuantization() : context_(test_context()), passes_(pass_context(*context_, {1, 8})) {}

  // The reasons of `raise`, "" when it has none.
  std::string reasons(const Parts& parts) {
    const auto graph = parse_graph(parts.text(), context_->ops);
    noop_elimination(*graph, passes_);
    common_subexpression_elimination(*graph, passes_);
    std::string text;
    for (const PatternReport& report : raise(*graph, passes_).patterns)
      for (const NearMiss& miss : report.near_misses) text += report.pattern + ": " + miss.reason + "\n";
    return text;
  }

  void expect(const Parts& parts, const std::vector<std::string>& words) {
    SCOPED_TRACE(parts.text());
    const std::string text = reasons(parts);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text << "wanted " << word;
  }

  std::shared_ptr<Context> context_;
  PassContext passes_;
};

TEST_F(WrittenQuantization, IsNotReportedWhereItIsRaised) {
  EXPECT_EQ(reasons(kFp8), "");
  EXPECT_EQ(reasons(kInt8), "");
}

TEST_F(WrittenQuantization, OfAnotherDivisorIsReported) {
  expect(with(kFp8, "value=448.0", "value=440.0"),
         {"per_token_group_quant_fp8", "group quantization to f8e4m3", "divides by 440, wanted 448"});
  expect(with(kFp8, "div_scalar(%c, value=448.0)", "mul_scalar(%c, value=0.0025)"),
         {"multiplies by 0.0025", "1 / 448"});
  expect(with(kInt8, "value=127.0", "value=128.0"), {"per_token_group_quant_int8", "divides by 128, wanted 127"});
  expect(with(kInt8, "div_scalar(%c, value=127.0)", "mul_scalar(%c, value=0.007874015748031496)"),
         {"multiplies by 0.00787402", "a division by 127"});
  expect(with(kFp8, "%s = div_scalar(%c, value=448.0)", "%s = clamp(%c, min=0.1)"), {"not divided", "448"});
}

TEST_F(WrittenQuantization, OfOtherBoundsIsReported) {
  expect(with(kFp8, "min=-448.0, max=448.0", "min=-400.0, max=400.0"), {"clamped to [-400, 400], wanted [-448, 448]"});
  expect(with(kInt8, "min=-128.0, max=127.0", "min=-126.0, max=127.0"), {"clamped to [-126, 127], wanted [-128, 127]"});
}

TEST_F(WrittenQuantization, OfOtherGroupsIsReported) {
  Parts parts = with(kFp8, "[6, 2, 64]", "[8, 96]");
  parts = with(parts, "[6, 2]", "[8]");
  expect(parts, {"groups have 96 columns", "divisor of the row's 128"});
}

TEST_F(WrittenQuantization, WithoutAFloorIsReportedWhereItMatters) {
  const Parts no_floor = with(kFp8, "%c = clamp(%m, min=1e-10)\n%s = div_scalar(%c", "%s = div_scalar(%m");
  expect(no_floor, {"no floor, wanted a clamp from below"});
  expect(with(no_floor, "%e = clamp(%d, min=-448.0, max=448.0)\n%q = cast(%e", "%q = cast(%d"),
         {"no floor", "not clamped", "[-448, 448]"});
  expect(with(kFp8, "clamp(%m, min=1e-10)", "add_scalar(%m, value=1e-10)"), {"computed with add_scalar"});
}

TEST_F(WrittenQuantization, OfAnotherRoundingIsReported) {
  expect(with(kInt8, "%n = round(%e)", "%h = add_scalar(%e, value=0.5)\n%n = trunc(%h)"),
         {"computed with add_scalar", "round or trunc"});
  expect(with(kFp8, "%q = cast(%e", "%n = round(%e)\n%q = cast(%n"), {"rounded by round", "the cast alone"});
  expect(with(kFp8, "%d = div(%r, %s)", "%i = reciprocal(%s)\n%d = mul(%r, %i)"),
         {"multiplied by 1 / scale, wanted a division"});
}

// A product of a value with itself has two ways to each value before it, so a chain of them has 2^60.
TEST_F(WrittenQuantization, IsLookedForOnceInEachValue) {
  std::string text = "graph g(%x0: f32[6, 128]) stage=pure {\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("%x{} = mul(%x{}, %x{})\n", i + 1, i, i);
  const auto graph = parse_graph(text + "%q = cast(%x60, dtype=i8)\nreturn %q\n}\n", context_->ops);
  EXPECT_TRUE(near_quantizations(*graph, context_->ops).empty());
}

TEST_F(WrittenQuantization, OfOtherTypesValuesOrReadersIsReported) {
  expect(with(kFp8, "dtype=f8e4m3", "dtype=f8e5m2"), {"codes are f8e5m2, wanted f8e4m3"});
  expect(with(kFp8, "%b = abs(%r)\n%m = amax(%b)", "%m = amax(%r)"), {"largest value, wanted the largest magnitude"});
  expect(with(kFp8, "return %q2, %s2", "return %q2, %s2, %d"), {"%q: group quantization", "has another reader"});
  expect(with(kFp8, "%s2 = reshape(%s, shape=[6, 2])\nreturn %q2, %s2", "return %q2, %s"),
         {"scales are given as [6, 2, 1], wanted [6, 2]"});
  // A copy of the scales in another layout comes after the op.
  EXPECT_EQ(reasons(with(kFp8, "return %q2, %s2", "%l = lay_out(%s2, strides=[3, 1])\nreturn %q2, %l")), "");
}

TEST_F(WrittenQuantization, OfARowIsComparedWithItsOwnScheme) {
  Parts parts = with(kFp8, "%r = reshape(%f, shape=[6, 2, 64])\n%b = abs(%r)", "%b = abs(%f)");
  parts = with(parts, "div(%r, %s)", "div(%f, %s)");
  parts.give = "return %q, %s\n";
  expect(with(parts, "value=448.0", "value=440.0"),
         {"dynamic_per_token_scaled_fp8_quant", "token quantization", "divides by 440, wanted 448"});
}

// The table agrees with the meanings of the ops.
TEST_F(WrittenQuantization, OfEachSchemeHasTheStepsOfItsRow) {
  const SchemeTable schemes(context_->ops);
  int compared = 0;
  for (const SchemeRow& row : schemes.rows()) {
    if (!row.steps) continue;
    int of_row = 0;
    for (const SampleCall& call : sample_calls(*row.quantizer)) {
      SCOPED_TRACE(call.text);
      Graph graph("g", Stage::pure);
      Trace trace(context_->ops, graph);
      Values values;
      for (const Tensor& tensor : call.operands)
        values.push_back(tensor.defined() ? trace.input("", tensor.meta) : Value());
      trace.finish(row.quantizer->meaning(trace, values, call.attributes));
      noop_elimination(graph, passes_);
      common_subexpression_elimination(graph, passes_);
      dead_code_elimination(graph, passes_);
      spell_alike(graph, passes_);
      assign_names(graph);
      for (const auto& node : graph.nodes()) {
        const auto written = node->is("cast") ? read_quantization(*node) : std::nullopt;
        if (!written || node->result()->meta.dtype != row.key.dtype) continue;
        const Attribute* is_short = call.attributes.find("short_last_group");
        if (is_short != nullptr && is_short->boolean()) continue;  // such rows are quantized in two parts
        EXPECT_EQ(differences(*written, row), std::vector<std::string>{}) << display(graph);
        ++of_row;
      }
    }
    EXPECT_GT(of_row, 0) << row.key.text();
    compared += of_row;
  }
  EXPECT_GT(compared, 40);
}

}  // namespace weft::written_quantization_test
