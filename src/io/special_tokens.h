#pragma once

// Finds added tokens in text before it is split and merged: the leftmost match, and the longest one at that position.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/vocabulary.h"

namespace weft {

class SpecialTokenFinder {
 public:
  // A range of the text: one added token, or text without added tokens (id -1).
  struct Stretch {
    int id = -1;
    size_t begin = 0;  // bytes
    size_t end = 0;
  };

  // With a normalizer, finds the added tokens that match normalized text, else those that match the original text.
  // Added tokens must have valid ids. UserError if the text of a token is empty or not UTF-8.
  explicit SpecialTokenFinder(const Vocabulary& vocabulary, const Normalizer* normalizer = nullptr);

  // Whether there are no tokens to find.
  bool empty() const { return entries_.empty(); }

  // Returns non-empty stretches that cover the text. That of a token has the white space that it strips, in which the
  // next token may begin; text after that one is plain text even if the earlier one stripped it. Without
  // `parse_special`, the text of a control token stays plain text, and no other token is matched inside it (Hugging
  // Face's encode_special_tokens).
  std::vector<Stretch> split(std::string_view text, bool parse_special) const;

 private:
  struct Entry {
    std::string text;
    AddedToken token;
    bool is_special = false;
  };

  const Entry* longest_at(std::string_view text, size_t offset) const;

  std::vector<Entry> entries_;              // sorted by text
  std::array<uint32_t, 257> first_with_{};  // entries [first_with_[b], first_with_[b + 1]) begin with byte b
};

}  // namespace weft
