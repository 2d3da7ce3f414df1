#pragma once

// Finds a token's id by its text. It uses open addressing with 8-byte slots, which fits in the caches, unlike a
// node-based map of 100,000 strings.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class TokenIndex {
 public:
  // Keeps no reference to `tokens`; the caller must pass the same list to find(). Empty texts are skipped. UserError if
  // two tokens have the same text, unless texts may repeat (then the last one is found), or if there are 2^31 of them.
  explicit TokenIndex(const std::vector<std::string>& tokens, bool may_repeat = false);

  std::optional<int> find(std::string_view text, const std::vector<std::string>& tokens) const;

 private:
  struct Slot {
    int32_t id = -1;  // -1: free
    uint32_t hash = 0;
  };
  std::vector<Slot> slots_;  // a power of two, at most half full
};

}  // namespace weft
