#include "io/prefix_index.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::prefix_index_test {

std::vector<std::pair<size_t, int>> prefixes(const PrefixIndex& index, std::string_view text) {
  std::vector<std::pair<size_t, int>> found;
  index.visit_prefixes(text, [&](size_t length, int id) { found.emplace_back(length, id); });
  return found;
}

TEST(PrefixIndex, FindsAllPrefixesOfRandomTexts) {
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
    // Half of the texts continue another one, so that many begin with the same 8 and 16 bytes.
    for (int i = 0; i < 60; ++i) {
      const auto other = std::next(ids.begin(), ids.empty() ? 0 : next(static_cast<uint32_t>(ids.size())));
      const bool continues = !ids.empty() && next(2) == 0;
      ids.emplace((continues ? other->first : "") + random_text(12), i);
    }
    std::vector<PrefixIndex::Entry> entries;
    for (const auto& [text, id] : ids) entries.insert(entries.begin(), {text, id});
    const PrefixIndex index(entries);
    for (int i = 0; i < 100; ++i) {
      const auto known = std::next(ids.begin(), next(static_cast<uint32_t>(ids.size())));
      const std::string text = (next(2) == 0 ? known->first : "") + random_text(16);
      std::vector<std::pair<size_t, int>> wanted;
      for (size_t length = text.size(); length > 0; --length)
        if (const auto found = ids.find(text.substr(0, length)); found != ids.end())
          wanted.emplace_back(length, found->second);
      ASSERT_EQ(prefixes(index, text), wanted);
    }
  }
}

TEST(PrefixIndex, MayBeEmpty) {
  EXPECT_TRUE(prefixes(PrefixIndex({}), "a").empty());
  EXPECT_TRUE(prefixes(PrefixIndex({}), "").empty());
}

}  // namespace weft::prefix_index_test
