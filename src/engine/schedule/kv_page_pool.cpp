#include "engine/schedule/kv_page_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/error.h"

namespace weft {

KvPagePool::KvPagePool(std::int64_t pages, std::int64_t block, bool is_caching)
    : block_(block), is_caching_(is_caching), pages_(static_cast<std::size_t>(pages)), free_count_(pages) {
  unpublished_.resize(pages_.size());
  std::iota(unpublished_.begin(), unpublished_.end(), 0);  // ascending numbers are a heap
  if (!is_caching) return;
  key_ = random_hash_key();
  tokens_ = std::make_unique_for_overwrite<std::int32_t[]>(static_cast<std::size_t>(pages * block));
  buckets_.assign(std::bit_ceil(2 * pages_.size() + 1), kNone);
  message_.resize(sizeof(ContentHash) + static_cast<std::size_t>(block) * sizeof(std::int32_t));
}

std::optional<std::int32_t> KvPagePool::take() {
  std::int32_t page = kNone;
  if (!unpublished_.empty()) {
    std::pop_heap(unpublished_.begin(), unpublished_.end(), std::greater<>());
    page = unpublished_.back();
    unpublished_.pop_back();
  } else if (oldest_ != kNone) {
    page = oldest_;
    remove_from_order(page);
    forget(page);
  } else {
    return std::nullopt;
  }
  at(page).references = 1;
  --free_count_;
  return page;
}

void KvPagePool::share(std::int32_t page) {
  CHECK(at(page).is_published, "page {} is not published", page);
  if (at(page).references++ > 0) return;
  remove_from_order(page);
  --free_count_;
}

void KvPagePool::release(std::vector<std::int32_t>& pages) {
  for (auto page = pages.rbegin(); page != pages.rend(); ++page) release(*page);
  pages.clear();
}

void KvPagePool::release(std::int32_t page) {
  CHECK(at(page).references > 0, "page {} is free already", page);
  if (--at(page).references == 0) free(page);
}

void KvPagePool::free(std::int32_t page) {
  ++free_count_;
  if (at(page).is_published) return add_newest(page);
  unpublished_.push_back(page);  // its capacity is that of all pages
  std::push_heap(unpublished_.begin(), unpublished_.end(), std::greater<>());
}

void KvPagePool::add_newest(std::int32_t page) {
  at(page).older = newest_;
  at(page).newer = kNone;
  (newest_ == kNone ? oldest_ : at(newest_).newer) = page;
  newest_ = page;
}

void KvPagePool::remove_from_order(std::int32_t page) {
  const Page& removed = at(page);
  (removed.older == kNone ? oldest_ : at(removed.older).newer) = removed.newer;
  (removed.newer == kNone ? newest_ : at(removed.newer).older) = removed.older;
}

KvPrefix KvPagePool::root(std::string_view salt) {
  if (!is_caching_) return {};
  return {.hash = hash_bytes(std::as_bytes(std::span(salt)), key_)};
}

std::int32_t& KvPagePool::bucket_of(const ContentHash& hash) { return buckets_[hash.low & (buckets_.size() - 1)]; }

ContentHash KvPagePool::hash_after(const KvPrefix& prefix, std::span<const std::int32_t> tokens) {
  CHECK(std::ssize(tokens) == block_, "a block has {} tokens, but {} were given", block_, tokens.size());
  std::memcpy(message_.data(), &prefix.hash, sizeof(ContentHash));
  std::memcpy(message_.data() + sizeof(ContentHash), tokens.data(), tokens.size_bytes());
  return hash_bytes(message_, key_);
}

std::int32_t KvPagePool::find_published(const ContentHash& hash, const KvPrefix& before,
                                        std::span<const std::int32_t> tokens) {
  std::int32_t page = bucket_of(hash);
  const auto is_wanted = [&] {
    return at(page).hash == hash && at(page).parent == before.id && at(page).tokens == block_ &&
           std::equal(tokens.begin(), tokens.end(), tokens_of(page));
  };
  while (page != kNone && !is_wanted()) page = at(page).next_in_bucket;
  return page;
}

std::optional<std::int32_t> KvPagePool::find(KvPrefix& prefix, std::span<const std::int32_t> tokens) {
  if (!is_caching_) return std::nullopt;
  const ContentHash hash = hash_after(prefix, tokens);
  const std::int32_t page = find_published(hash, prefix, tokens);
  if (page == kNone) return std::nullopt;
  prefix = {.hash = hash, .id = at(page).prefix};
  return page;
}

void KvPagePool::publish(KvPrefix& prefix, std::int32_t page, std::span<const std::int32_t> tokens) {
  if (!is_caching_) return;
  const ContentHash hash = hash_after(prefix, tokens);
  const std::int32_t equal = find_published(hash, prefix, tokens);
  // Inserted after the equal page, so that find() stops at the first: duplicates do not lengthen the search.
  enter(page, hash, prefix.id, tokens, equal == kNone ? bucket_of(hash) : at(equal).next_in_bucket);
  at(page).prefix = equal == kNone ? ++last_prefix_ : at(equal).prefix;
  prefix = {.hash = hash, .id = at(page).prefix};
}

// Publishes a page between `link` and what it links to.
void KvPagePool::enter(std::int32_t page, const ContentHash& hash, std::uint64_t parent,
                       std::span<const std::int32_t> tokens, std::int32_t& link) {
  Page& published = at(page);
  CHECK(published.references > 0 && !published.is_published, "page {} cannot be published", page);
  published.is_published = true;
  published.hash = hash;
  published.parent = parent;
  published.prefix = 0;
  published.tokens = std::ssize(tokens);
  std::copy(tokens.begin(), tokens.end(), tokens_of(page));
  published.next_in_bucket = link;
  link = page;
}

// All parts after a prefix are in one bucket, where they are compared token by token.
ContentHash KvPagePool::hash_of_parts(const KvPrefix& prefix) const {
  return hash_bytes(std::as_bytes(std::span(&prefix.hash, 1)), key_);
}

std::optional<KvPagePool::Part> KvPagePool::find_part(const KvPrefix& prefix, std::span<const std::int32_t> tokens) {
  if (!is_caching_) return std::nullopt;
  const ContentHash hash = hash_of_parts(prefix);
  std::optional<Part> longest;
  for (std::int32_t page = bucket_of(hash); page != kNone; page = at(page).next_in_bucket) {
    const Page& known = at(page);
    const bool is_longer = known.tokens > (longest ? longest->tokens : 0) && known.tokens <= std::ssize(tokens);
    if (known.tokens == block_ || !is_longer || known.hash != hash || known.parent != prefix.id) continue;
    if (std::equal(tokens.begin(), tokens.begin() + known.tokens, tokens_of(page)))
      longest = {.page = page, .tokens = known.tokens};
  }
  return longest;
}

void KvPagePool::publish_part(const KvPrefix& prefix, std::int32_t page, std::span<const std::int32_t> tokens) {
  if (!is_caching_) return;
  CHECK(!tokens.empty() && std::ssize(tokens) < block_, "a part of a block of {} tokens has {}", block_, tokens.size());
  const ContentHash hash = hash_of_parts(prefix);
  enter(page, hash, prefix.id, tokens, bucket_of(hash));
}

void KvPagePool::forget(std::int32_t page) {
  std::int32_t* link = &bucket_of(at(page).hash);
  while (*link != page) link = &at(*link).next_in_bucket;
  *link = at(page).next_in_bucket;
  at(page).is_published = false;
}

bool KvPagePool::forget_all() {
  if (free_count_ != page_count()) return false;
  while (oldest_ != kNone) {
    const std::int32_t page = oldest_;
    remove_from_order(page);
    forget(page);
    --free_count_;
    free(page);
  }
  return true;
}

}  // namespace weft
