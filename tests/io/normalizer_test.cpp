#include "io/normalizer.h"

#include <cstdint>
#include <cstring>
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

// The expected texts are those of tokenizers 0.23.3, whose tables are of Unicode 8, 9 and 17.
TEST(Normalizer, EachStepHasItsVersionOfUnicode) {
  // U+1FBF0 is a digit of Unicode 13. U+1193B of the same version is a mark that the old tables do not have.
  EXPECT_EQ(apply({UnicodeForm::nfkc}, "\uff11\U0001FBF0\uff12"), "1\U0001FBF02");
  EXPECT_EQ(apply({UnicodeForm::nfd, StripAccents{}}, "\u00e9\U0001193B\u00e9"), "e\U0001193Be");
  EXPECT_EQ(apply({UnicodeForm::nfc}, "e\u0301\U0001193B"), "\u00e9\U0001193B");
  EXPECT_EQ(apply({Lowercase{}}, "\u1c89\U00010D51"), "\u1c8a\U00010D71");
  // U+11C3F is a mark and U+08E2 a control character of Unicode 9.
  EXPECT_EQ(apply({BertText{}}, "\u00e9\U00011C3F\u08E2"), "e\U00011C3F\u08E2");
  EXPECT_EQ(apply({StripAccents{}}, "a\U00011C3F"), "a");
}

TEST(Normalizer, AMapOfGraphemesDoesNotRemoveTheFirstCharacter) {
  // A trie with the key "\x01" and an empty replacement.
  std::string map(4 + 512 * 4 + 1, '\0');
  const auto put = [&map](std::size_t at, std::uint32_t value) { std::memcpy(map.data() + at * 4, &value, 4); };
  put(0, 512 * 4);
  put(1, 2u << 10);
  put(1 + (2 ^ 1), 1u | (1u << 8) | (4u << 10));
  put(1 + (2 ^ 1 ^ 4), 0x80000000);
  EXPECT_EQ(apply({MapCharacters{.bytes = map, .by_grapheme = true}}, "\x01z"), "z");
  EXPECT_FALSE(Normalizer({MapCharacters{.bytes = map, .by_grapheme = true}}).removes_first("\x01z", "z"));
  EXPECT_TRUE(Normalizer({StripSpaces{}}).removes_first(" z", "z"));
}

TEST(Normalizer, Bert) {
  EXPECT_EQ(apply({BertText{}}, "\u00c9t\u00e9\t\u200b\u4e2dx\x01\uFFFD"), "ete  \u4e2d x");
  EXPECT_EQ(apply({BertText{.strip_accents = false, .lowercase = false}}, "\u00c9"), "\u00c9");
  EXPECT_EQ(apply({BertText{.separate_chinese = false}}, "\u4e2d"), "\u4e2d");
}

}  // namespace weft::normalizer_test
