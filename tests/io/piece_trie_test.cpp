#include "io/piece_trie.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::piece_trie_test {

std::vector<std::pair<size_t, int>> prefixes(const PieceTrie& trie, std::string_view text) {
  std::vector<std::pair<size_t, int>> found;
  trie.visit_prefixes(text, [&](size_t length, int id) { found.emplace_back(length, id); });
  return found;
}

TEST(PieceTrie, FindsAllPrefixesOfRandomTexts) {
  uint32_t state = 3;
  const auto next = [&](uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % bound;
  };
  const auto random_text = [&](uint32_t most) {
    std::string text;
    for (uint32_t n = 1 + next(most); n > 0; --n) text += static_cast<char>("ab\xC3\xFF"[next(4)]);
    return text;
  };
  for (int round = 0; round < 50; ++round) {
    std::map<std::string, int> ids;
    for (int i = 0; i < 40; ++i) ids.emplace(random_text(12), i);
    std::vector<PieceTrie::Entry> entries;
    for (const auto& [text, id] : ids) entries.insert(entries.begin(), {text, id});
    const PieceTrie trie(entries);
    for (int i = 0; i < 100; ++i) {
      const std::string text = random_text(16);
      std::vector<std::pair<size_t, int>> wanted;
      for (size_t length = 1; length <= text.size(); ++length)
        if (const auto found = ids.find(text.substr(0, length)); found != ids.end())
          wanted.emplace_back(length, found->second);
      ASSERT_EQ(prefixes(trie, text), wanted);
    }
  }
}

TEST(PieceTrie, MayBeEmpty) {
  EXPECT_TRUE(prefixes(PieceTrie({}), "a").empty());
  EXPECT_TRUE(prefixes(PieceTrie({}), "").empty());
}

}  // namespace weft::piece_trie_test
