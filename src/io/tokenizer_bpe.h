#pragma once

// Byte-pair merging computes the tokens of one piece. It repeatedly merges the neighbouring pair of lowest rank, and
// among equal ranks the leftmost, until no pair has a merge.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/token_index.h"
#include "io/vocabulary.h"

namespace weft {

class BytePairMerger {
 public:
  // Working memory of a call. Each thread has its own.
  struct Scratch {
    std::vector<int32_t> ids;
    std::vector<uint32_t> ranks, next, previous;
    std::vector<uint64_t> queue;
  };

  // Keeps no reference to its arguments. UserError if the left, right or joined text of a merge is not a token, or if a
  // merge is repeated.
  BytePairMerger(const Vocabulary& vocabulary, const TokenIndex& index);

  // Appends the tokens of a piece of n raw bytes in O(n log n).
  void append(std::string_view piece, Scratch& scratch, std::vector<int>& ids) const;

 private:
  struct Slot {
    int32_t left = -1;  // -1: free
    int32_t right = -1;
    uint32_t rank = 0;
    int32_t merged = 0;
  };

  const Slot* find(int32_t left, int32_t right) const;
  uint32_t rank_of(int32_t left, int32_t right) const;
  size_t home_of(int32_t left, int32_t right) const;
  void insert(const Slot& merge, const Merge& source);
  void begin(std::string_view piece, std::vector<int32_t>& ids) const;
  void merge_short(Scratch& scratch) const;
  void merge_long(Scratch& scratch) const;

  std::array<int32_t, 256> token_of_byte_{};  // -1: none
  std::optional<int> unknown_;
  bool fuse_unknown_ = false;
  std::vector<Slot> slots_;  // a power of two, at most two thirds full
  int slot_bits_ = 0;
};

}  // namespace weft
