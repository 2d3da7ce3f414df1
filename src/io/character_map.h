#pragma once

// SentencePiece's precompiled_charsmap: replacements of characters and of sequences of characters. Layout: a u32 with
// the size of a double-array trie (darts-clone) in bytes, the trie, and replacements that each end with a zero byte.
// The value of a key in the trie is the offset of its replacement.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class CharacterMap {
 public:
  // UserError for broken bytes.
  explicit CharacterMap(std::string_view bytes);

  // Replaces the longest key at each position, as SentencePiece does.
  std::string apply(std::string_view text) const;
  // Replaces each grapheme cluster of less than 6 bytes by the shortest key in front of it, and otherwise each
  // character, as Hugging Face's Precompiled does.
  std::string apply_by_grapheme(std::string_view text) const;

 private:
  struct Match {
    size_t length = 0;  // 0: none
    std::string_view replacement;
  };
  Match match(std::string_view text, bool longest) const;
  void append_mapped(std::string_view part, std::string& result) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace weft
