#pragma once

// The tokens of text that has none of its own: those of its bytes, else the unknown token, else none.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/token_index.h"
#include "io/vocabulary.h"

namespace weft {

// The spelling of a byte token, "<0xE2>".
std::string byte_token_text(uint8_t byte);
// The byte of such a spelling; nullopt for another text.
std::optional<uint8_t> byte_of_token(std::string_view text);

class FallbackTokens {
 public:
  // Keeps no reference to its arguments.
  FallbackTokens(const Vocabulary& vocabulary, const TokenIndex& index);

  // Calls `append(id, offset)` for each token of a text, where `offset` is the byte of the text at which the token
  // begins. `after_unknown` is state between the texts of a piece, and false at its begin; the caller sets it to false
  // after each text with a token of its own.
  template <class Append>
  void append(std::string_view text, bool& after_unknown, const Append& append) const {
    bool all = true;
    for (const char byte : text) all = all && token_of_byte_[static_cast<uint8_t>(byte)] >= 0;
    if (all) {
      for (size_t i = 0; i < text.size(); ++i) append(token_of_byte_[static_cast<uint8_t>(text[i])], i);
    } else if (unknown_ && !(fuse_unknown_ && after_unknown)) {
      append(*unknown_, size_t{0});
    }
    after_unknown = !all;
  }

 private:
  std::array<int32_t, 256> token_of_byte_{};  // -1: none
  std::optional<int> unknown_;
  bool fuse_unknown_ = false;
};

}  // namespace weft
