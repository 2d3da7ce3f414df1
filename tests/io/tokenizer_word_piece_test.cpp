#include "io/tokenizer_word_piece.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::tokenizer_word_piece_test {

using Ids = std::vector<int>;

Ids tokens_of(std::string_view word, size_t most = 100) {
  Vocabulary vocabulary;
  vocabulary.model = TokenModel::word_piece;
  vocabulary.tokens = {"[UNK]", "un", "unable", "##able", "##ab", "##le", "u", "##"};
  vocabulary.kinds.assign(vocabulary.tokens.size(), TokenKind::normal);
  vocabulary.kinds[0] = TokenKind::unknown;
  vocabulary.unknown = 0;
  vocabulary.max_word_characters = most;
  PieceScratch scratch;
  Ids ids;
  WordPieceModel(vocabulary).append(word, scratch, ids);
  return ids;
}

TEST(WordPieceModel, TakesTheLongestFromTheLeft) {
  EXPECT_EQ(tokens_of("unable"), (Ids{2}));
  EXPECT_EQ(tokens_of("unabable"), (Ids{1, 4, 3}));
  EXPECT_EQ(tokens_of("uable"), (Ids{6, 3}));
}

TEST(WordPieceModel, AWordThatDoesNotFitIsUnknownAsAWhole) {
  EXPECT_EQ(tokens_of("unablx"), (Ids{0}));
  EXPECT_EQ(tokens_of("able"), (Ids{0}));
  EXPECT_EQ(tokens_of("unable", 6), (Ids{2}));
  EXPECT_EQ(tokens_of("unable", 5), (Ids{0}));
}

}  // namespace weft::tokenizer_word_piece_test
