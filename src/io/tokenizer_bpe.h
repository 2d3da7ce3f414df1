#pragma once

// Byte-pair encoding by a list of merges, whose ranks are their indices.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "io/fallback_tokens.h"
#include "io/piece_model.h"
#include "io/space_cuts.h"

namespace weft {

class BytePairMerger final : public PieceModel {
 public:
  // Keeps no reference to its arguments. UserError if the left, right or joined text of a merge is not a token, or if a
  // merge is repeated.
  BytePairMerger(const Vocabulary& vocabulary, const TokenIndex& index);

  // Takes O(n log n) time for a piece of n bytes.
  void append(std::string_view piece, PieceScratch& scratch, std::vector<int>& ids) const override;

 private:
  struct Slot {
    int32_t left = -1;  // -1: free
    int32_t right = -1;
    uint32_t rank = 0;
    int32_t merged = 0;
  };

  // Tokens of single characters, in pages of 256 that exist if they have a token.
  class CharacterTokens {
   public:
    void add(char32_t character, int32_t id);
    int32_t find(char32_t character) const;  // -1: none

   private:
    using Page = std::array<int32_t, 256>;
    std::array<uint16_t, 0x1100> page_of_{};  // 1 + index; 0: none
    std::vector<Page> pages_;
  };

  void add_merges(const Vocabulary& vocabulary, const TokenIndex& index);
  PairJoin find(int32_t left, int32_t right) const;
  size_t home_of(int32_t left, int32_t right) const;
  static std::vector<Slot> found_merges(const Vocabulary& vocabulary, const TokenIndex& index, size_t first,
                                        size_t end);
  void insert(const std::vector<Slot>& found, const std::vector<Merge>& merges);
  void begin_with_bytes(std::string_view piece, std::vector<PairSymbol>& symbols) const;
  void begin_with_characters(std::string_view piece, std::vector<PairSymbol>& symbols) const;
  void append_part(std::string_view part, PieceScratch& scratch, std::vector<int>& ids) const;

  bool byte_alphabet_ = true;
  std::array<int32_t, 256> token_of_byte_{};  // used with the byte alphabet; -1 if a byte has no token
  CharacterTokens token_of_character_;        // used without the byte alphabet
  FallbackTokens fallback_;
  SpaceCuts cuts_;
  std::vector<Slot> slots_;  // a power of two, at most two thirds full
  int slot_bits_ = 0;
};

}  // namespace weft
