#include "io/tokenizer_unigram.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/sentencepiece_vocabulary.h"
#include "scored_pieces.h"
#include "tests/thrown_message.h"

namespace weft::tokenizer_unigram_test {

using Ids = std::vector<int>;

Vocabulary scored(const std::vector<std::pair<std::string, float>>& pieces) {
  return scored_pieces(TokenModel::unigram, pieces);
}

TEST(UnigramModel, TakesTheBestSum) {
  const std::vector<std::pair<std::string, float>> pieces = {
      {"a", -1}, {"b", -1}, {"c", -1}, {"ab", -1.5F}, {"bc", -1}};
  EXPECT_EQ(tokens_of(scored(pieces), "abc"), (Ids{0, 4}));
  EXPECT_EQ(tokens_of(scored(pieces), "ab"), (Ids{3}));
  EXPECT_EQ(tokens_of(scored(pieces), ""), (Ids{}));
}

TEST(UnigramModel, OfEqualSumsTheLongestLastTokenWins) {
  EXPECT_EQ(tokens_of(scored({{"a", -1}, {"aa", -1}}), "aaa"), (Ids{0, 1}));
}

TEST(UnigramModel, UnknownCharactersCostMoreThanAnyToken) {
  Vocabulary vocabulary = scored({{"?", -3}, {"a", -1}});
  vocabulary.unknown = 0;
  vocabulary.kinds[0] = TokenKind::unknown;
  vocabulary.fuse_unknown = true;
  EXPECT_EQ(tokens_of(vocabulary, "a\u00e9\u20aca"), (Ids{1, 0, 1}));
}

TEST(UnigramModel, UserDefinedPiecesOfSentencePieceWin) {
  SentencePieceTables tables;
  tables.tokens = {"a", "aa", "aaa"};
  tables.scores = {-1, -9, -0.5F};
  tables.kinds = {TokenKind::normal, TokenKind::user_defined, TokenKind::normal};
  tables.is_unigram = true;
  EXPECT_EQ(tokens_of(vocabulary_from_sentencepiece(tables), "aa"), (Ids{1}));
}

TEST(UnigramModel, TokensOutsideTheModelAreNotMade) {
  Vocabulary vocabulary = scored({{"a", -1}, {"aa", 0}, {"aaa", -2.5F}});
  vocabulary.kinds[1] = TokenKind::user_defined;
  vocabulary.in_model = {true, false, true};
  EXPECT_EQ(tokens_of(vocabulary, "aa"), (Ids{0, 0}));
  vocabulary.kinds[2] = TokenKind::user_defined;
  EXPECT_EQ(tokens_of(vocabulary, "aaa"), (Ids{2}));
  vocabulary.kinds[2] = TokenKind::control;
  EXPECT_EQ(tokens_of(vocabulary, "aaa"), (Ids{0, 0, 0}));
}

TEST(UnigramModel, SumsAreInFloatUnlessTheVocabularySaysDouble) {
  Vocabulary vocabulary = scored({{"a", -33554432}, {"b", 1}, {"ab", -33554432}});
  EXPECT_EQ(tokens_of(vocabulary, "ab"), (Ids{2}));
  vocabulary.sums_in_double = true;
  EXPECT_EQ(tokens_of(vocabulary, "ab"), (Ids{0, 1}));
}

TEST(UnigramModel, NeedsNormalTokens) {
  Vocabulary vocabulary = scored({{"?", 0}});
  vocabulary.kinds[0] = TokenKind::unknown;
  EXPECT_NE(message_of([&] { tokens_of(vocabulary, "x"); }).find("must have normal tokens"), std::string::npos);
}

}  // namespace weft::tokenizer_unigram_test
