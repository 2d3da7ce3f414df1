#pragma once

// Finds a token's id by its text: open addressing over 8-byte slots, which stays in the caches where a node-based map
// of 100,000 strings does not.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class TokenIndex {
 public:
  // Keeps no reference to `tokens`; find() wants the same list again. Empty texts are left out. UserError: two tokens
  // have the same text, or there are 2^31 of them.
  explicit TokenIndex(const std::vector<std::string>& tokens);

  std::optional<int> find(std::string_view text, const std::vector<std::string>& tokens) const;

 private:
  struct Slot {
    int32_t id = -1;  // -1: free
    uint32_t hash = 0;
  };
  std::vector<Slot> slots_;  // a power of two, at most half full
};

}  // namespace weft
