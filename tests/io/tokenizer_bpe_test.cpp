#include "io/tokenizer_bpe.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "small_vocabulary.h"
#include "tests/thrown_message.h"

namespace weft::tokenizer_bpe_test {

std::vector<int> merge(const Vocabulary& vocabulary, std::string_view piece) {
  const TokenIndex index(vocabulary.tokens);
  PieceScratch scratch;
  std::vector<int> ids;
  BytePairMerger(vocabulary, index).append(piece, scratch, ids);
  return ids;
}

// The definition, word for word: the lowest rank, leftmost first, until nothing merges.
std::vector<int> merge_by_definition(const Vocabulary& vocabulary, std::string_view piece) {
  const TokenIndex index(vocabulary.tokens);
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const Merge& merge = vocabulary.merges[rank];
    ranks[{merge.text.substr(0, merge.left_bytes), merge.text.substr(merge.left_bytes)}] = rank;
  }
  std::vector<std::string> symbols;
  for (const char byte : piece) symbols.push_back(in_byte_alphabet(std::string(1, byte)));
  while (true) {
    size_t best = std::numeric_limits<size_t>::max();
    size_t place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found == ranks.end() || found->second >= best) continue;
      best = found->second;
      place = i;
    }
    if (best == std::numeric_limits<size_t>::max()) break;
    symbols[place] += symbols[place + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(place) + 1);
  }
  std::vector<int> ids;
  for (const std::string& symbol : symbols) ids.push_back(index.find(symbol, vocabulary.tokens).value());
  return ids;
}

TEST(BytePairMerger, TakesTheLowestRankFirst) {
  EXPECT_EQ(merge(small_vocabulary({{"b", "c"}, {"a", "b"}}), "abc"), (std::vector<int>{'a', 256}));
  EXPECT_EQ(merge(small_vocabulary({{"a", "b"}, {"b", "c"}}), "abc"), (std::vector<int>{256, 'c'}));
}

TEST(BytePairMerger, TakesTheLeftmostOfEqualRanks) {
  EXPECT_EQ(merge(small_vocabulary({{"a", "a"}}), "aaa"), (std::vector<int>{256, 'a'}));
}

TEST(BytePairMerger, AgreesWithItsDefinitionOnShortAndLongPieces) {
  uint32_t state = 12345;
  const auto next = [&](uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % bound;
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> known = {"a", "b", "c", " "};
    std::vector<std::pair<std::string, std::string>> merges;
    for (int i = 0; i < 20; ++i) {
      std::pair<std::string, std::string> pair = {known[next(static_cast<uint32_t>(known.size()))],
                                                  known[next(static_cast<uint32_t>(known.size()))]};
      bool is_new = pair.first.size() + pair.second.size() <= 8;
      for (const auto& other : merges) is_new = is_new && other != pair;
      if (!is_new) continue;
      known.push_back(pair.first + pair.second);
      merges.push_back(std::move(pair));
    }
    const Vocabulary vocabulary = small_vocabulary(merges);
    for (const uint32_t length : {0u, 1u, 2u, 5u, 17u, 47u, 48u, 49u, 50u, 120u, 300u}) {
      std::string piece;
      for (uint32_t i = 0; i < length; ++i) piece += "abc "[next(4)];
      ASSERT_EQ(merge(vocabulary, piece), merge_by_definition(vocabulary, piece)) << "'" << piece << "'";
    }
  }
}

TEST(BytePairMerger, DropsBytesWithoutTokenBeforeMerging) {
  Vocabulary vocabulary = small_vocabulary({{"a", "b"}});
  vocabulary.tokens[0x04] = "[gone]";
  EXPECT_EQ(merge(vocabulary,
                  "a\x04"
                  "b"),
            (std::vector<int>{256}));
}

TEST(BytePairMerger, GivesTheUnknownTokenForBytesWithoutOne) {
  Vocabulary vocabulary = small_vocabulary({{"a", "b"}});
  vocabulary.tokens[0x04] = "[unknown]";
  vocabulary.unknown = 0x04;
  EXPECT_EQ(merge(vocabulary,
                  "a\x04\x04"
                  "b"),
            (std::vector<int>{'a', 4, 4, 'b'}));
  vocabulary.fuse_unknown = true;
  EXPECT_EQ(merge(vocabulary,
                  "a\x04\x04"
                  "b\x04"),
            (std::vector<int>{'a', 4, 'b', 4}));
}

TEST(BytePairMerger, AMillionEqualBytesTakeNoQuadraticTime) {
  std::vector<std::pair<std::string, std::string>> merges = {{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}};
  EXPECT_EQ(merge(small_vocabulary(merges), std::string(1'000'000, 'a')).size(), 125'000u);
}

TEST(BytePairMerger, RefusesMergesOfUnknownTokensAndRepeatedOnes) {
  Vocabulary vocabulary = small_vocabulary({{"a", "b"}});
  vocabulary.merges.push_back({"abc", 2});
  EXPECT_THROW(merge(vocabulary, ""), UserError);
  vocabulary.merges.back() = {"ab", 1};
  EXPECT_EQ(message_of([&] { merge(vocabulary, ""); }),
            "[tokenizer] merges must be distinct, but 0 and 1 are both \"a\" + \"b\"");
}

}  // namespace weft::tokenizer_bpe_test
