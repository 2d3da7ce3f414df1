#include "io/token_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/huge_pages.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr size_t kTogether = 32;  // look-ups whose reads overlap

uint32_t hash_of(std::string_view text) {
  const size_t hash = std::hash<std::string_view>()(text);
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

TokenIndex::TokenIndex(const std::vector<std::string>& tokens, bool may_repeat) {
  USER_CHECK(tokens.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()),
             "[tokenizer] a vocabulary may have up to 2^31 tokens, but has {}", tokens.size());
  const size_t slots = std::bit_ceil(2 * tokens.size() + 1);
  reserve_in_huge_pages(slots_, slots);
  slots_.resize(slots);
  const size_t mask = slots_.size() - 1;
  std::array<uint32_t, kTogether> hashes;
  for (size_t first = 0; first < tokens.size(); first += kTogether) {
    const size_t count = std::min(kTogether, tokens.size() - first);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(tokens[first + i]);
      __builtin_prefetch(&slots_[hashes[i] & mask], 1);
    }
    for (size_t i = 0; i < count; ++i) {
      const size_t id = first + i;
      if (tokens[id].empty()) continue;
      size_t place = hashes[i] & mask;
      while (slots_[place].id >= 0) {
        const Slot& slot = slots_[place];
        if (slot.hash == hashes[i] && tokens[slot.id] == tokens[id]) {
          USER_CHECK(may_repeat, "[tokenizer] tokens must be distinct, but {} and {} are both {}", slot.id, id,
                     quote(tokens[id]));
          break;
        }
        place = (place + 1) & mask;
      }
      slots_[place] = {static_cast<int32_t>(id), hashes[i]};
    }
  }
}

int32_t TokenIndex::find(std::string_view text, uint32_t hash, const std::vector<std::string>& tokens) const {
  const size_t mask = slots_.size() - 1;
  for (size_t place = hash & mask; slots_[place].id >= 0; place = (place + 1) & mask) {
    const Slot& slot = slots_[place];
    if (slot.hash == hash && tokens[slot.id] == text) return slot.id;
  }
  return -1;
}

std::optional<int> TokenIndex::find(std::string_view text, const std::vector<std::string>& tokens) const {
  const int32_t id = find(text, hash_of(text), tokens);
  return id < 0 ? std::nullopt : std::optional<int>(id);
}

void TokenIndex::find_all(std::span<const std::string_view> texts, const std::vector<std::string>& tokens,
                          std::span<int32_t> ids) const {
  const size_t mask = slots_.size() - 1;
  std::array<uint32_t, kTogether> hashes;
  for (size_t first = 0; first < texts.size(); first += kTogether) {
    const size_t count = std::min(kTogether, texts.size() - first);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(texts[first + i]);
      __builtin_prefetch(&slots_[hashes[i] & mask]);
    }
    // Nearly always the first slot is the right one.
    for (size_t i = 0; i < count; ++i)
      if (const int32_t id = slots_[hashes[i] & mask].id; id >= 0) __builtin_prefetch(&tokens[static_cast<size_t>(id)]);
    for (size_t i = 0; i < count; ++i)
      if (const int32_t id = slots_[hashes[i] & mask].id; id >= 0)
        __builtin_prefetch(tokens[static_cast<size_t>(id)].data());
    for (size_t i = 0; i < count; ++i) ids[first + i] = find(texts[first + i], hashes[i], tokens);
  }
}

}  // namespace weft
