#include "io/token_index.h"

#include <bit>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"

namespace weft {
namespace {

uint32_t hash_of(std::string_view text) {
  const size_t hash = std::hash<std::string_view>()(text);
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

TokenIndex::TokenIndex(const std::vector<std::string>& tokens, bool may_repeat) {
  USER_CHECK(tokens.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()),
             "[tokenizer] a vocabulary may have up to 2^31 tokens, but has {}", tokens.size());
  slots_.resize(std::bit_ceil(2 * tokens.size() + 1));
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    const uint32_t hash = hash_of(tokens[id]);
    size_t place = hash & mask;
    while (slots_[place].id >= 0) {
      const Slot& slot = slots_[place];
      if (slot.hash == hash && tokens[slot.id] == tokens[id]) {
        USER_CHECK(may_repeat, "[tokenizer] tokens must be distinct, but {} and {} are both {}", slot.id, id,
                   quote(tokens[id]));
        break;
      }
      place = (place + 1) & mask;
    }
    slots_[place] = {static_cast<int32_t>(id), hash};
  }
}

std::optional<int> TokenIndex::find(std::string_view text, const std::vector<std::string>& tokens) const {
  const uint32_t hash = hash_of(text);
  const size_t mask = slots_.size() - 1;
  for (size_t place = hash & mask; slots_[place].id >= 0; place = (place + 1) & mask) {
    const Slot& slot = slots_[place];
    if (slot.hash == hash && tokens[slot.id] == text) return slot.id;
  }
  return std::nullopt;
}

}  // namespace weft
