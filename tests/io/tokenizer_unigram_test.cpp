#include "io/tokenizer_unigram.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/thrown_message.h"

namespace weft::tokenizer_unigram_test {

using Ids = std::vector<int>;

Vocabulary scored(const std::vector<std::pair<std::string, float>>& pieces) {
  Vocabulary vocabulary;
  vocabulary.model = TokenModel::unigram;
  vocabulary.byte_alphabet = false;
  for (const auto& [text, score] : pieces) {
    vocabulary.tokens.push_back(text);
    vocabulary.scores.push_back(score);
    vocabulary.kinds.push_back(TokenKind::normal);
  }
  return vocabulary;
}

Ids tokens_of(const Vocabulary& vocabulary, std::string_view text) {
  const TokenIndex index(vocabulary.tokens);
  PieceScratch scratch;
  Ids ids;
  UnigramModel(vocabulary, index).append(text, scratch, ids);
  return ids;
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

TEST(UnigramModel, UserDefinedPiecesWin) {
  Vocabulary vocabulary = scored({{"a", -1}, {"aa", -9}, {"aaa", -0.5F}});
  vocabulary.kinds[1] = TokenKind::user_defined;
  EXPECT_EQ(tokens_of(vocabulary, "aa"), (Ids{1}));
}

TEST(UnigramModel, NeedsNormalTokens) {
  Vocabulary vocabulary = scored({{"?", 0}});
  vocabulary.kinds[0] = TokenKind::unknown;
  EXPECT_NE(message_of([&] { tokens_of(vocabulary, "x"); }).find("must have normal tokens"), std::string::npos);
}

}  // namespace weft::tokenizer_unigram_test
