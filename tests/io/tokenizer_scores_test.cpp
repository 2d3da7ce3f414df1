#include "io/tokenizer_scores.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "scored_pieces.h"

namespace weft::tokenizer_scores_test {

using Ids = std::vector<int>;

Vocabulary scored(const std::vector<std::pair<std::string, float>>& pieces) {
  return scored_pieces(TokenModel::scores, pieces);
}

// The definition: the best score, leftmost first, until nothing joins.
Ids tokens_by_definition(const Vocabulary& vocabulary, std::string_view text) {
  std::map<std::string, int> id_of;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) id_of[vocabulary.tokens[id]] = static_cast<int>(id);
  std::vector<std::string> symbols;
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_step(text, i).length;
    symbols.emplace_back(text.substr(i, length));
    i += length;
  }
  while (true) {
    int best = -1;
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = id_of.find(symbols[i] + symbols[i + 1]);
      if (found == id_of.end()) continue;
      if (best >= 0 && vocabulary.scores[found->second] <= vocabulary.scores[best]) continue;
      best = found->second;
      at = i;
    }
    if (best < 0) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
  Ids ids;
  for (const std::string& symbol : symbols)
    if (id_of.count(symbol) != 0) ids.push_back(id_of[symbol]);
  return ids;
}

TEST(ScoreMerger, TheBestScoreJoinsFirstAndOfEqualOnesTheLeftmost) {
  EXPECT_EQ(tokens_of(scored({{"a", 0}, {"b", 0}, {"c", 0}, {"ab", -2}, {"bc", -1}}), "abc"), (Ids{0, 4}));
  EXPECT_EQ(tokens_of(scored({{"a", 0}, {"b", 0}, {"c", 0}, {"ab", 3}, {"bc", -1}}), "abc"), (Ids{3, 2}));
  EXPECT_EQ(tokens_of(scored({{"a", 0}, {"b", 0}, {"c", 0}, {"ab", -1}, {"bc", -1}}), "abc"), (Ids{3, 2}));
}

TEST(ScoreMerger, CharactersWithoutTokenStillJoin) {
  EXPECT_EQ(tokens_of(scored({{"\u00e9t\u00e9", -1}, {"\u00e9t", -2}}), "\u00e9t\u00e9"), (Ids{0}));
}

TEST(ScoreMerger, OtherCharactersBecomeBytesOrUnknown) {
  Vocabulary vocabulary = scored({{"a", 0}, {"<0xC3>", 0}, {"<0xA9>", 0}, {"?", 0}});
  EXPECT_EQ(tokens_of(vocabulary, "a\u00e9\u00e9a"), (Ids{0, 0}));
  vocabulary.unknown = 3;
  EXPECT_EQ(tokens_of(vocabulary, "a\u00e9\u00e9a"), (Ids{0, 3, 3, 0}));
  vocabulary.fuse_unknown = true;
  EXPECT_EQ(tokens_of(vocabulary, "a\u00e9\u00e9a"), (Ids{0, 3, 0}));
  vocabulary.kinds[1] = vocabulary.kinds[2] = TokenKind::byte;
  EXPECT_EQ(tokens_of(vocabulary, "a\u00e9"), (Ids{0, 1, 2}));
  EXPECT_EQ(tokens_of(vocabulary, "a\u20ac"), (Ids{0, 3}));  // not all of its bytes have a token
}

TEST(ScoreMerger, AgreesWithItsDefinition) {
  uint32_t state = 7;
  const auto next = [&](uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % bound;
  };
  const std::vector<std::string> letters = {"a", "b", "\u00e9", "\u2581"};
  for (int round = 0; round < 60; ++round) {
    std::map<std::string, float> pieces;
    for (const std::string& letter : letters) pieces[letter] = 0;
    for (int i = 0; i < 25; ++i) {
      std::string text;
      for (uint32_t n = 2 + next(3); n > 0; --n) text += letters[next(4)];
      pieces[text] = -static_cast<float>(next(6));
    }
    const Vocabulary vocabulary = scored({pieces.begin(), pieces.end()});
    for (const uint32_t length : {0u, 1u, 2u, 7u, 30u, 48u, 49u, 150u}) {
      std::string text;
      for (uint32_t i = 0; i < length; ++i) text += letters[next(4)];
      ASSERT_EQ(tokens_of(vocabulary, text), tokens_by_definition(vocabulary, text)) << text;
    }
  }
}

TEST(ScoreMerger, AMillionEqualCharactersTakeNoQuadraticTime) {
  const Vocabulary vocabulary = scored({{"a", 0}, {"aa", -1}, {"aaaa", -2}});
  EXPECT_EQ(tokens_of(vocabulary, std::string(1'000'000, 'a')).size(), 250'000u);
}

}  // namespace weft::tokenizer_scores_test
