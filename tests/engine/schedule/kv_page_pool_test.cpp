#include "engine/schedule/kv_page_pool.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace weft::kv_page_pool_test {

using Tokens = std::vector<std::int32_t>;

// Publishes the pages of a sequence block by block.
void publish_all(KvPagePool& pool, const std::vector<std::int32_t>& pages, const std::vector<Tokens>& blocks,
                 const std::string& salt = "") {
  KvPrefix prefix = pool.root(salt);
  for (std::size_t i = 0; i < blocks.size(); ++i) pool.publish(prefix, pages[i], blocks[i]);
}

std::vector<std::int32_t> found(KvPagePool& pool, const std::vector<Tokens>& blocks, const std::string& salt = "") {
  std::vector<std::int32_t> pages;
  KvPrefix prefix = pool.root(salt);
  for (const Tokens& block : blocks) {
    const auto page = pool.find(prefix, block);
    if (!page) break;
    pages.push_back(*page);
  }
  return pages;
}

std::vector<std::int32_t> take(KvPagePool& pool, int count) {
  std::vector<std::int32_t> pages;
  for (int i = 0; i < count; ++i) pages.push_back(pool.take().value());
  return pages;
}

TEST(KvPagePool, WithoutCacheTakesTheLowestPage) {
  KvPagePool pool(4, 2);
  std::vector<std::int32_t> first = take(pool, 3), second{first[1], first[2]};
  EXPECT_EQ(first, (Tokens{0, 1, 2}));
  publish_all(pool, first, {{1, 2}});
  EXPECT_TRUE(found(pool, {{1, 2}}).empty());
  first = {first[0]};
  pool.release(second);
  pool.release(first);
  EXPECT_EQ(take(pool, 4), (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(pool.take(), std::nullopt);
}

TEST(KvPagePool, FindsABlockOnlyAfterAllTokensBeforeIt) {
  KvPagePool pool(8, 2, true);
  std::vector<std::int32_t> pages = take(pool, 3);
  const std::vector<Tokens> blocks{{1, 2}, {3, 4}, {5, 6}};
  EXPECT_TRUE(found(pool, blocks).empty());
  publish_all(pool, pages, blocks);
  EXPECT_EQ(found(pool, blocks), pages);
  EXPECT_EQ(found(pool, {{1, 2}, {5, 6}}), Tokens{pages[0]});
  EXPECT_TRUE(found(pool, {{3, 4}}).empty());
  EXPECT_TRUE(found(pool, blocks, "salt").empty());
  const Tokens all = pages;
  pool.release(pages);
  EXPECT_EQ(found(pool, blocks), all) << "also when it is free";
}

TEST(KvPagePool, TakesTailsBeforeHeadsAndTheLeastRecentlyUsedFirst) {
  KvPagePool pool(6, 1, true);
  std::vector<std::int32_t> first = take(pool, 2), second = take(pool, 2), unpublished = take(pool, 1);
  const Tokens a = first, b = second, c = unpublished;
  publish_all(pool, first, {{1}, {2}});
  publish_all(pool, second, {{3}, {4}});
  pool.release(second);
  pool.release(first);
  pool.release(unpublished);
  // The pages that nothing is known of, then the second sequence from its end, then the first.
  EXPECT_EQ(take(pool, 6), (Tokens{c[0], 5, b[1], b[0], a[1], a[0]}));
  EXPECT_TRUE(found(pool, {{1}}).empty());
}

TEST(KvPagePool, ASharedPageStaysUntilItsLastReference) {
  KvPagePool pool(2, 1, true);
  std::vector<std::int32_t> first = take(pool, 1);
  publish_all(pool, first, {{7}});
  std::vector<std::int32_t> second = found(pool, {{7}});
  pool.share(second[0]);
  pool.release(first);
  EXPECT_EQ(pool.free_count(), 1);
  EXPECT_EQ(take(pool, 1), Tokens{1});
  EXPECT_EQ(pool.take(), std::nullopt);
  const std::int32_t shared = second[0];
  pool.release(second);
  EXPECT_TRUE(pool.is_free(shared));
  pool.share(shared);
  EXPECT_EQ(pool.take(), std::nullopt) << "it is in use again";
}

// Two sequences compute the same blocks at once. When the pages of one are taken for other tokens, those of the other
// are found, also the blocks that it computed after the pages were gone.
TEST(KvPagePool, FindsTheOtherOfTwoEqualPages) {
  KvPagePool pool(5, 1, true);
  std::vector<std::int32_t> first = take(pool, 1), second = take(pool, 2);
  const Tokens a = first, b = second;
  publish_all(pool, first, {{1}});
  KvPrefix prefix = pool.root("");
  pool.publish(prefix, second[0], Tokens{1});
  EXPECT_EQ(found(pool, {{1}}), a);
  pool.release(first);
  take(pool, 3);
  EXPECT_EQ(found(pool, {{1}}), Tokens{b[0]});
  pool.publish(prefix, second[1], Tokens{2});
  EXPECT_EQ(found(pool, {{1}, {2}}), b);
}

TEST(KvPagePool, FindsTheLongestPartThatTokensBeginWith) {
  KvPagePool pool(8, 4, true);
  std::vector<std::int32_t> pages = take(pool, 5);
  const Tokens all = pages;
  KvPrefix after = pool.root("");
  pool.publish(after, all[0], Tokens{1, 2, 3, 4});
  pool.publish_part(after, all[1], Tokens{5});
  pool.publish_part(after, all[2], Tokens{5, 6, 7});
  pool.publish_part(pool.root(""), all[3], Tokens{5, 6});
  pool.publish_part(after, all[4], Tokens{8, 6});
  const auto page_of = [&](const KvPrefix& prefix, const Tokens& tokens) {
    const auto part = pool.find_part(prefix, tokens);
    return part ? std::pair(part->page, part->tokens) : std::pair(-1, std::int64_t{0});
  };
  using Part = std::pair<std::int32_t, std::int64_t>;
  EXPECT_EQ(page_of(after, {5, 6, 7, 9}), Part(all[2], 3));
  EXPECT_EQ(page_of(after, {5, 6, 7}), Part(all[2], 3));
  EXPECT_EQ(page_of(after, {5, 6}), Part(all[1], 1));
  EXPECT_EQ(page_of(after, {8, 7}), Part(-1, 0));
  EXPECT_EQ(page_of(after, {}), Part(-1, 0));
  EXPECT_EQ(page_of(pool.root(""), {5, 6, 7}), Part(all[3], 2));
  EXPECT_EQ(page_of(pool.root("salt"), {5, 6, 7}), Part(-1, 0));
  EXPECT_EQ(found(pool, {{1, 2, 3, 4}, {5, 6, 7, 9}}), Tokens{all[0]}) << "a part is no block";
  pool.release(pages);
  EXPECT_EQ(take(pool, 5), (Tokens{5, 6, 7, all[4], all[3]}));
  EXPECT_EQ(page_of(pool.root(""), {5, 6, 7}), Part(-1, 0)) << "its page was taken";
  EXPECT_EQ(page_of(after, {5, 6, 7}), Part(all[2], 3));
}

TEST(KvPagePool, ForgetsAllOnlyWhileNoneIsInUse) {
  KvPagePool pool(3, 1, true);
  std::vector<std::int32_t> pages = take(pool, 2);
  publish_all(pool, pages, {{1}, {2}});
  EXPECT_FALSE(pool.forget_all());
  pool.release(pages);
  EXPECT_TRUE(pool.forget_all());
  EXPECT_TRUE(found(pool, {{1}}).empty());
  EXPECT_EQ(take(pool, 3), (Tokens{0, 1, 2}));
}

// A plain model of the pool: every published page with all its tokens from the begin of its sequence, and the free
// pages in the order in which they are taken.
struct PlainPool {
  explicit PlainPool(int pages) : references(static_cast<std::size_t>(pages)) {
    for (std::int32_t page = 0; page < pages; ++page) unpublished.insert(page);
  }

  std::optional<std::int32_t> take() {
    std::int32_t page = -1;
    if (!unpublished.empty()) {
      page = *unpublished.begin();
      unpublished.erase(unpublished.begin());
    } else if (!published_free.empty()) {
      page = published_free.begin()->second;
      erase_free(page);
      const auto equal = by_tokens.find(tokens.at(page));
      std::erase(equal->second, page);
      if (equal->second.empty()) by_tokens.erase(equal);
      tokens.erase(page);
    } else {
      return std::nullopt;
    }
    references[static_cast<std::size_t>(page)] = 1;
    return page;
  }
  void erase_free(std::int32_t page) {
    published_free.erase(freed.at(page));
    freed.erase(page);
  }
  void release(const std::vector<std::int32_t>& pages) {
    for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
      if (--references[static_cast<std::size_t>(*page)] > 0) continue;
      if (tokens.contains(*page)) {
        freed[*page] = ++time;
        published_free[time] = *page;
      } else {
        unpublished.insert(*page);
      }
    }
  }
  void share(std::int32_t page) {
    if (references[static_cast<std::size_t>(page)]++ == 0) erase_free(page);
  }
  void publish(std::int32_t page, const Tokens& all) {
    tokens[page] = all;
    by_tokens[all].push_back(page);
  }
  // The pages that find() may return.
  const std::vector<std::int32_t>* find(const Tokens& all) const {
    const auto equal = by_tokens.find(all);
    return equal == by_tokens.end() ? nullptr : &equal->second;
  }
  std::int64_t free_count() const { return std::ssize(unpublished) + std::ssize(published_free); }

  std::vector<int> references;
  std::set<std::int32_t> unpublished;
  std::map<std::int32_t, Tokens> tokens;
  std::map<Tokens, std::vector<std::int32_t>> by_tokens;
  std::map<int, std::int32_t> published_free;  // by time
  std::map<std::int32_t, int> freed;
  int time = 0;
};

struct PlainSequence {
  KvPrefix prefix;
  std::vector<std::int32_t> pages;
  Tokens tokens;  // of the published pages
};

// Sequences begin with what the pool has of their tokens, grow by pages, publish them, and end.
TEST(KvPagePool, AgreesWithAPlainModelInAMillionOperations) {
  constexpr int kPages = 24, kOperations = 1'000'000;
  KvPagePool pool(kPages, 1, true);
  PlainPool plain(kPages);
  std::vector<PlainSequence> sequences;
  std::mt19937 random(5);
  const auto below = [&](std::size_t most) { return static_cast<std::size_t>(random()) % most; };
  std::int64_t hits = 0;
  for (int operation = 0; operation < kOperations; ++operation) {
    const std::size_t kind = below(8);
    if (kind == 0 && sequences.size() < 6) {
      PlainSequence& added = sequences.emplace_back();
      added.prefix = pool.root("");
      for (std::size_t length = below(6); length > 0; --length) {
        const Tokens block{static_cast<std::int32_t>(below(2))};
        Tokens wanted = added.tokens;
        wanted.push_back(block[0]);
        const auto page = pool.find(added.prefix, block);
        const auto* const known = plain.find(wanted);
        ASSERT_EQ(page.has_value(), known != nullptr) << operation;
        if (!page) break;
        ASSERT_TRUE(std::count(known->begin(), known->end(), *page) == 1) << operation;
        pool.share(*page);
        plain.share(*page);
        added.pages.push_back(*page);
        added.tokens = std::move(wanted);
        ++hits;
      }
    } else if (kind == 1 && !sequences.empty()) {
      const std::size_t ended = below(sequences.size());
      plain.release(sequences[ended].pages);
      pool.release(sequences[ended].pages);
      sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(ended));
    } else if (!sequences.empty()) {
      PlainSequence& grown = sequences[below(sequences.size())];
      if (grown.pages.size() == grown.tokens.size()) {
        const auto page = pool.take();
        ASSERT_EQ(page, plain.take()) << operation;
        if (page) grown.pages.push_back(*page);
      } else {
        const Tokens block{static_cast<std::int32_t>(below(2))};
        grown.tokens.push_back(block[0]);
        pool.publish(grown.prefix, grown.pages.back(), block);
        plain.publish(grown.pages.back(), grown.tokens);
      }
    }
    ASSERT_EQ(pool.free_count(), plain.free_count()) << operation;
  }
  EXPECT_GT(hits, 10'000);
}

}  // namespace weft::kv_page_pool_test
