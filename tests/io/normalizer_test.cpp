#include "io/normalizer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::normalizer_test {

std::string apply(std::vector<NormalizerStep> steps, std::string_view text) { return Normalizer(steps).apply(text); }

TEST(Normalizer, UnicodeForms) {
  EXPECT_EQ(apply({}, "e\u0301"), "e\u0301");
  EXPECT_EQ(apply({UnicodeForm::nfc}, "e\u0301"), "\u00e9");
  EXPECT_EQ(apply({UnicodeForm::nfd}, "\u00e9"), "e\u0301");
  EXPECT_EQ(apply({UnicodeForm::nfkc}, "\ufb01"), "fi");
  EXPECT_EQ(apply({UnicodeForm::nfc}, "\ufb01"), "\ufb01");
  EXPECT_EQ(apply({UnicodeForm::nfc}, "plain"), "plain");
}

TEST(Normalizer, StepsRunInTheirOrder) {
  const ReplaceText marks{.pattern = " ", .replacement = "\u2581"};
  EXPECT_EQ(apply({PrependText{" "}, marks}, "a b"), "\u2581a\u2581b");
  EXPECT_EQ(apply({marks, PrependText{" "}}, "a b"), " a\u2581b");
  EXPECT_EQ(apply({PrependText{"x"}}, ""), "");
}

TEST(Normalizer, ReplacesPatterns) {
  EXPECT_EQ(apply({ReplaceText{.pattern = "a+", .is_literal = false, .replacement = "<>"}}, "caabca"), "c<>bc<>");
  EXPECT_EQ(apply({ReplaceText{.pattern = "x*", .is_literal = false, .replacement = "-"}}, "\u00e9x"), "-\u00e9-");
  EXPECT_THROW(apply({ReplaceText{.pattern = "(", .is_literal = false, .replacement = ""}}, ""), UserError);
}

TEST(Normalizer, Spaces) {
  EXPECT_EQ(apply({StripSpaces{}}, "\u00a0 a b\n"), "a b");
  EXPECT_EQ(apply({StripSpaces{.left = false}}, " a "), " a");
  EXPECT_EQ(apply({SqueezeSpaces{}}, "  a   b \n c "), "a b \n c");
  EXPECT_EQ(apply({SqueezeSpaces{}}, "   "), "");
}

TEST(Normalizer, LettersAndAccents) {
  EXPECT_EQ(apply({Lowercase{}}, "\u00c9A\u0130"), "\u00e9ai\u0307");
  EXPECT_EQ(apply({UnicodeForm::nfd, StripAccents{}}, "\u00e9"), "e");
}

TEST(Normalizer, Bert) {
  EXPECT_EQ(apply({BertText{}}, "\u00c9t\u00e9\t\u200b\u4e2dx\x01\uFFFD"), "ete  \u4e2d x");
  EXPECT_EQ(apply({BertText{.strip_accents = false, .lowercase = false}}, "\u00c9"), "\u00c9");
  EXPECT_EQ(apply({BertText{.separate_chinese = false}}, "\u4e2d"), "\u4e2d");
}

}  // namespace weft::normalizer_test
