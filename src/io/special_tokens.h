#pragma once

// Finds added tokens in text as they stand, before it is split and merged: leftmost, of several there the longest.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/vocabulary.h"

namespace weft {

// The text in the Vocabulary's normal form; `text` must be valid UTF-8.
std::string normalize(std::string_view text, Normalizer normalizer);

class SpecialTokenFinder {
 public:
  // A stretch of text: one token, or none of them (id -1).
  struct Stretch {
    int id = -1;
    size_t begin = 0;  // bytes
    size_t end = 0;
  };

  // Finds those added tokens of a vocabulary that are looked for in normalized text, or those that are not. Added
  // tokens must have valid ids. UserError: a text that is empty or not UTF-8.
  SpecialTokenFinder(const Vocabulary& vocabulary, bool normalized);

  // Non-empty stretches that cover the text, but for white space that a token takes along. Without `parse_special`,
  // the text of a control token is left as it is, and no other token is looked for inside it (Hugging Face's
  // encode_special_tokens).
  std::vector<Stretch> split(std::string_view text, bool parse_special) const;

 private:
  struct Entry {
    std::string text;
    AddedToken token;
    bool is_special = false;
  };

  const Entry* longest_at(std::string_view text, size_t offset) const;

  std::vector<Entry> entries_;              // by text
  std::array<uint32_t, 257> first_with_{};  // entries [first_with_[b], first_with_[b + 1]) begin with byte b
};

}  // namespace weft
