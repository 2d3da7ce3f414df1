#pragma once

// Finds a token's id by its text. It uses open addressing with 8-byte slots, which fits in the caches, unlike a
// node-based map of 100,000 strings.

#include <cstdint>
#include <optional>
#include <span>
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

  // Stores the id of each text, or -1. Reads from memory overlap, which makes many look-ups several times as fast.
  void find_all(std::span<const std::string_view> texts, const std::vector<std::string>& tokens,
                std::span<int32_t> ids) const;

 private:
  struct Slot {
    int32_t id = -1;  // -1: free
    uint32_t hash = 0;
  };
  int32_t find(std::string_view text, uint32_t hash, const std::vector<std::string>& tokens) const;

  std::vector<Slot> slots_;  // a power of two, at most half full
};

}  // namespace weft
