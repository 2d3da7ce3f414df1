#include "io/pre_tokenizer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::pre_tokenizer_test {

using Strings = std::vector<std::string>;

Strings split(const std::vector<PreTokenizerStep>& steps, const std::string& text) {
  const Pieces pieces = PreTokenizer(steps).split(text);
  Strings result;
  for (size_t i = 0; i < pieces.ranges.size(); ++i) result.emplace_back(pieces[i]);
  return result;
}

Strings split_at(const std::string& pattern, SplitBehavior behavior, bool invert, const std::string& text) {
  return split({PatternSplit{.pattern = pattern, .behavior = behavior, .invert = invert}}, text);
}

// The example of Hugging Face's documentation of the behaviours.
TEST(PreTokenizer, EachBehaviourTreatsMatchesAsHuggingFaceSays) {
  const std::string text = "the-final--countdown";
  EXPECT_EQ(split_at("-", SplitBehavior::removed, false, text), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(split_at("-", SplitBehavior::isolated, false, text), (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split_at("-", SplitBehavior::merged_with_previous, false, text),
            (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split_at("-", SplitBehavior::merged_with_next, false, text), (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split_at("-", SplitBehavior::contiguous, false, text), (Strings{"the", "-", "final", "--", "countdown"}));
}

TEST(PreTokenizer, InvertExchangesMatchesAndGaps) {
  EXPECT_EQ(split_at("[a-z]+", SplitBehavior::removed, true, "ab-cd"), (Strings{"ab", "cd"}));
  EXPECT_EQ(split_at("[a-z]+", SplitBehavior::merged_with_previous, true, "ab-cd"), (Strings{"ab-", "cd"}));
}

TEST(PreTokenizer, EmptyMatchesCut) {
  EXPECT_EQ(split_at(R"((?=\p{Lu}))", SplitBehavior::isolated, false, "oneTwo\u00c9"),
            (Strings{"one", "Two", "\u00c9"}));
}

TEST(PreTokenizer, Gpt2PatternKeepsTheSpaceWithItsWord) {
  EXPECT_EQ(split({PatternSplit{.pattern = std::string(kGpt2Pattern)}}, "I'm  here: 42!\n "),
            (Strings{"I", "'m", " ", " here", ":", " 42", "!", "\n "}));
}

TEST(PreTokenizer, DigitsStandAlone) {
  EXPECT_EQ(split({DigitSplit{.individual = true}}, "a12\u0663\u00bdb"),
            (Strings{"a", "1", "2", "\u0663", "\u00bd", "b"}));
  EXPECT_EQ(split({DigitSplit{.individual = false}}, "a12\u0663b"), (Strings{"a", "12\u0663", "b"}));
}

TEST(PreTokenizer, EachStepSeesOnlyItsPiece) {
  const std::vector<PreTokenizerStep> steps = {DigitSplit{}, PatternSplit{.pattern = std::string(kGpt2Pattern)}};
  // The look-ahead of \s+(?!\S) does not see the digit.
  EXPECT_EQ(split(steps, "a  1"), (Strings{"a", "  ", "1"}));
}

TEST(PreTokenizer, PrefixSpaceIsPutWhereNoneIs) {
  const std::vector<PreTokenizerStep> steps = {PatternSplit{.pattern = ",", .is_literal = true}, PrefixSpace{}};
  EXPECT_EQ(split(steps, "a, b"), (Strings{" a", " ,", " b"}));
}

TEST(PreTokenizer, DigitsInGroupsOfThreeFromTheRight) {
  const DigitSplit thousands{.individual = false, .in_thousands = true};
  EXPECT_EQ(split({thousands}, "a12345b678,1"), (Strings{"a", "12", "345", "b", "678", ",", "1"}));
  EXPECT_EQ(split({thousands}, "1234567"), (Strings{"1", "234", "567"}));
}

TEST(PreTokenizer, MetaspaceMarksSpaces) {
  EXPECT_EQ(split({Metaspace{}}, "a b  c"), (Strings{"\u2581a", "\u2581b", "\u2581", "\u2581c"}));
  EXPECT_EQ(split({Metaspace{}}, " a"), (Strings{"\u2581a"}));
  EXPECT_EQ(split({Metaspace{.front = Metaspace::Front::never}}, "a b"), (Strings{"a", "\u2581b"}));
  EXPECT_EQ(split({Metaspace{.split = false}}, "a b"), (Strings{"\u2581a\u2581b"}));
  const PatternSplit words{.pattern = std::string(kWhiteSpacePattern), .behavior = SplitBehavior::removed};
  EXPECT_EQ(split({words, Metaspace{}}, "a b"), (Strings{"\u2581a", "\u2581b"}));
  const Metaspace first{.front = Metaspace::Front::first};
  EXPECT_EQ(split({words, first}, "a b"), (Strings{"\u2581a", "b"}));
  EXPECT_EQ(PreTokenizer({first}).split("a", false)[0], "a");
}

TEST(PreTokenizer, PunctuationOfBert) {
  EXPECT_EQ(split({PatternSplit{.pattern = std::string(kPunctuationPattern)}}, "a$b\u3002`c"),
            (Strings{"a", "$", "b", "\u3002", "`", "c"}));
}

// The expected pieces are those of tokenizers 0.23.3, which has the digits of Unicode 17 and the punctuation of
// Unicode 8.
TEST(PreTokenizer, DigitsAreNewAndPunctuationIsOld) {
  EXPECT_EQ(split({DigitSplit{.individual = false}}, "a\U00010D40\U00011DE0"), (Strings{"a", "\U00010D40\U00011DE0"}));
  EXPECT_EQ(split({PatternSplit{.pattern = bert_punctuation_pattern()}}, "a\u2e43b\u166d-\u1b4e"),
            (Strings{"a\u2e43b", "\u166d", "-", "\u1b4e"}));
}

TEST(PreTokenizer, StepsAfterTheByteLevelAlphabetCutBytes) {
  const std::vector<PreTokenizerStep> steps = {InByteAlphabet{}, DigitSplit{.individual = false}};
  EXPECT_EQ(split(steps, "a\u4f72 12"), (Strings{"a\xE4", "\xBD\xB2", " ", "12"}));
}

TEST(PreTokenizer, NoTextGivesNoPieces) {
  EXPECT_TRUE(split({PatternSplit{.pattern = std::string(kGpt2Pattern)}}, "").empty());
  EXPECT_EQ(split({}, "whole text"), (Strings{"whole text"}));
}

TEST(PreTokenizer, LongRunsOfSpacesAreOnePiece) {
  const std::string text = std::string(1'000'000, ' ') + "x";
  const Pieces pieces = PreTokenizer({PatternSplit{.pattern = R"(\s*[\r\n]+|\s+(?!\S)|\s+|\S+)"}}).split(text);
  ASSERT_EQ(pieces.ranges.size(), 3u);
  EXPECT_EQ(pieces.ranges[0].end, 999'999u);
}

}  // namespace weft::pre_tokenizer_test
