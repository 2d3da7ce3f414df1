#pragma once

// The KV pages of a model by number: which are in use, and the prefix cache, which finds pages by their tokens.
//
// A sequence is cut into blocks of as many tokens as a page has. The page of a full block whose keys and values were
// computed may be published. It is then found by the tokens of its block and of all blocks before it, also after its
// sequence has ended, until the page is taken for other tokens. It is found by a keyed hash, and then compared token by
// token, so a collision of hashes never changes an answer.
//
// A page of which only the first tokens are computed may be published, too, as a part of a block. Whoever finds it
// copies it and goes on in the copy. This is for pages with the states of recurrent layers, which are those after the
// last computed token and of no other.
//
// A page has one reference for each sequence that uses it; pages without references are free. Free pages that are not
// published are taken first, the lowest number first. Published ones follow, the least recently freed first.
//
// No function allocates memory after construction.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/content_hash.h"

namespace weft {

// Stands for the tokens from the begin of a sequence to the end of one of its blocks.
struct KvPrefix {
  ContentHash hash;      // of the tokens, and of the salt
  std::uint64_t id = 0;  // equal for equal tokens as long as a page of them is published; 0 before the first block
};

class KvPagePool {
 public:
  // Without `is_caching` no page is published.
  explicit KvPagePool(std::int64_t pages = 0, std::int64_t block = 1, bool is_caching = false);

  std::int64_t page_count() const { return static_cast<std::int64_t>(pages_.size()); }
  std::int64_t free_count() const { return free_count_; }
  bool is_caching() const { return is_caching_; }
  bool is_free(std::int32_t page) const { return at(page).references == 0; }

  // A free page, which has one reference then and is published no more; nullopt if there is none.
  std::optional<std::int32_t> take();
  // Adds a reference to a page that find() returned.
  void share(std::int32_t page);
  // Removes a reference of each page, from the last to the first, so that the end of a sequence is taken for other
  // tokens before its begin. Empties the list.
  void release(std::vector<std::int32_t>& pages);
  void release(std::int32_t page);

  // The empty prefix. Sequences with different salts share no pages.
  KvPrefix root(std::string_view salt);
  // The published page of the block with these tokens after `prefix`; of several, the first one as long as it is
  // published. Moves `prefix` to the end of that block if there is a page.
  std::optional<std::int32_t> find(KvPrefix& prefix, std::span<const std::int32_t> tokens);
  // Publishes a page in use as that of the block with these tokens after `prefix`, and moves `prefix` to its end.
  void publish(KvPrefix& prefix, std::int32_t page, std::span<const std::int32_t> tokens);
  struct Part {
    std::int32_t page = 0;
    std::int64_t tokens = 0;  // 1 to block - 1
  };
  // The longest published part of a block after `prefix` that `tokens` begin with.
  std::optional<Part> find_part(const KvPrefix& prefix, std::span<const std::int32_t> tokens);
  // Publishes a page in use, of which these tokens are computed, as a part of the block after `prefix`. The page must
  // not change as long as it is published.
  void publish_part(const KvPrefix& prefix, std::int32_t page, std::span<const std::int32_t> tokens);
  // Ends the publication of all pages. Returns false, and does nothing, while a page is in use.
  bool forget_all();

 private:
  static constexpr std::int32_t kNone = -1;

  struct Page {
    std::int32_t references = 0;
    bool is_published = false;
    std::int32_t older = kNone, newer = kNone;  // among the free published pages
    std::int32_t next_in_bucket = kNone;
    ContentHash hash;          // of a published page, as KvPrefix::hash at the end of its block
    std::uint64_t prefix = 0;  // KvPrefix::id there; 0 for a part
    std::uint64_t parent = 0;  // KvPrefix::id before the block
    std::int64_t tokens = 0;   // fewer than `block_` for a part, whose hash is that of the prefix before it
  };

  Page& at(std::int32_t page) { return pages_[static_cast<std::size_t>(page)]; }
  const Page& at(std::int32_t page) const { return pages_[static_cast<std::size_t>(page)]; }
  std::int32_t* tokens_of(std::int32_t page) { return tokens_.get() + page * block_; }
  std::int32_t& bucket_of(const ContentHash& hash);
  ContentHash hash_of_parts(const KvPrefix& prefix) const;
  ContentHash hash_after(const KvPrefix& prefix, std::span<const std::int32_t> tokens);
  std::int32_t find_published(const ContentHash& hash, const KvPrefix& before, std::span<const std::int32_t> tokens);
  void enter(std::int32_t page, const ContentHash& hash, std::uint64_t parent, std::span<const std::int32_t> tokens,
             std::int32_t& link);
  void forget(std::int32_t page);
  void free(std::int32_t page);
  void add_newest(std::int32_t page);
  void remove_from_order(std::int32_t page);

  std::int64_t block_;
  bool is_caching_;
  HashKey key_;
  std::vector<Page> pages_;
  std::int64_t free_count_;
  std::vector<std::int32_t> unpublished_;         // free pages, a heap with the lowest number first
  std::int32_t oldest_ = kNone, newest_ = kNone;  // free published pages
  std::unique_ptr<std::int32_t[]> tokens_;        // [pages, block], of published pages
  std::vector<std::int32_t> buckets_;             // the first page of each; by the hash
  std::uint64_t last_prefix_ = 0;
  std::vector<std::byte> message_;  // what is hashed
};

}  // namespace weft
