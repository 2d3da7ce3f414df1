// Every pattern of the tree holds bit for bit, and what does not hold is told.

#include "compiler/pattern_proof.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/parse.h"
#include "ir/pattern_rewrite.h"
#include "ir/print.h"
#include "tests/sample_call.h"

namespace weft {
namespace {

const Context& context() {
  static const std::shared_ptr<Context> shared = test_context();
  return *shared;
}

PatternProof proof_of(const std::string& text, bool exact = true) {
  const auto definitions = parse_definitions(text, context().ops, "pattern");
  return prove_pattern(*std::get<std::shared_ptr<Pattern>>(definitions.at(0)), context(), exact);
}

std::string pattern(const std::string& header, const std::string& before, const std::string& after) {
  return "pattern p(" + header + ") {\n before {\n" + before + "\n }\n after {\n" + after + "\n }\n}\n";
}

TEST(EveryPattern, ComputesTheSameBitsOnSamples) {
  ASSERT_FALSE(context().patterns.empty());
  int samples = 0;
  for (const FusionPattern& entry : context().patterns) {
    const PatternProof proof = prove_pattern(entry.pattern, context(), true);
    EXPECT_EQ(proof.failure, "") << display(entry.pattern);
    EXPECT_GE(proof.samples, 3) << entry.pattern.name;
    samples += proof.samples;
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

TEST(PatternProof, TellsWhatAfterComputesOtherwise) {
  const std::string equal = pattern("?x", "%a = silu(?x)\nreturn %a", "%b = sigmoid(?x)\n%a = mul(?x, %b)\nreturn %a");
  EXPECT_EQ(proof_of(equal, false).failure, "");
  EXPECT_NE(proof_of(equal, true).failure.find("result 0 of after"), std::string::npos) << "not to the last bit";
  const PatternProof wrong = proof_of(pattern("?x", "%a = silu(?x)\nreturn %a", "%a = sigmoid(?x)\nreturn %a"), false);
  EXPECT_NE(wrong.failure.find("result 0 of after: element 0"), std::string::npos) << wrong.failure;
  EXPECT_NE(wrong.failure.find("with ?x: "), std::string::npos) << wrong.failure;
}

TEST(PatternProof, TellsTypesThatDiffer) {
  const PatternProof proof = proof_of(pattern("?x", "%a = silu(?x)\nreturn %a", "%a = cast(?x, dtype=i32)\nreturn %a"));
  EXPECT_NE(proof.failure.find("but after gives i32"), std::string::npos) << proof.failure;
}

TEST(PatternProof, TellsWhenNothingCanBeTried) {
  EXPECT_NE(proof_of(pattern("?x: f32[?n, 77, 3]", "%a = silu(?x)\nreturn %a", "%a = silu(?x)\nreturn %a"))
                .failure.find("no sample"),
            std::string::npos);
}

TEST(PatternProof, ChoosesWhatConditionsAsk) {
  const PatternProof proof = proof_of(
      "pattern p(?x: ?T[?n, ?d], ?g: int) where ?g in {32, 64} {\n before {\n%q, %s = per_token_group_quant_int8(?x, "
      "group_size=?g)\nreturn %q, %s\n }\n after {\n%n = neg(?x)\n%m = neg(%n)\n%q, %s = "
      "per_token_group_quant_int8(%m, group_size=?g)\nreturn %q, %s\n }\n}\n");
  EXPECT_EQ(proof.failure, "");
  EXPECT_GE(proof.samples, 3);
}

}  // namespace
}  // namespace weft
