#include "io/prefix_index.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weft::prefix_index_test {

std::vector<std::pair<size_t, int>> prefixes(const PrefixIndex& index, std::string_view text) {
  std::vector<std::pair<size_t, int>> found;
  index.visit_prefixes(text, [&](size_t length, int id) { found.emplace_back(length, id); });
  return found;
}

class Random {
 public:
  uint32_t below(uint32_t bound) {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 16) % bound;
  }
  std::string text(uint32_t most) {
    std::string text;
    for (uint32_t n = 1 + below(most); n > 0; --n) text += static_cast<char>("ab\xC3\xFF"[below(4)]);
    return text;
  }

 private:
  uint32_t state_ = 3;
};

// Half of the texts continue another one, so that many begin with the same 8 and 16 bytes.
void expect_all_prefixes(Random& random, uint32_t count, int lookups) {
  std::map<std::string, int> ids;
  std::vector<std::string> texts;
  const auto known = [&] {
    return random.below(2) == 0 && !texts.empty() ? texts[random.below(static_cast<uint32_t>(texts.size()))] : "";
  };
  for (uint32_t i = 0; i < count; ++i)
    if (std::string text = known() + random.text(12); ids.emplace(text, static_cast<int>(i)).second)
      texts.push_back(std::move(text));
  std::vector<PrefixIndex::Entry> entries;
  for (const std::string& text : texts) entries.push_back({text, ids.at(text)});
  const PrefixIndex index(entries);
  for (int i = 0; i < lookups; ++i) {
    const std::string text = known() + random.text(16);
    std::vector<std::pair<size_t, int>> wanted;
    for (size_t length = text.size(); length > 0; --length)
      if (const auto found = ids.find(text.substr(0, length)); found != ids.end())
        wanted.emplace_back(length, found->second);
    ASSERT_EQ(prefixes(index, text), wanted);
  }
}

TEST(PrefixIndex, FindsAllPrefixesOfRandomTexts) {
  Random random;
  for (int round = 0; round < 50; ++round) expect_all_prefixes(random, 60, 100);
}

// Two threads make the index.
TEST(PrefixIndex, FindsAllPrefixesAmongManyTexts) {
  Random random;
  expect_all_prefixes(random, 40'000, 2'000);
}

TEST(PrefixIndex, MayBeEmpty) {
  EXPECT_TRUE(prefixes(PrefixIndex({}), "a").empty());
  EXPECT_TRUE(prefixes(PrefixIndex({}), "").empty());
}

}  // namespace weft::prefix_index_test
