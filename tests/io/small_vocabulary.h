#pragma once

// A byte-level vocabulary for tests: ids 0 to 255 are the single bytes, then the merges' results, then added tokens.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/byte_alphabet.h"
#include "io/vocabulary.h"

namespace weft {

inline std::string in_byte_alphabet(std::string_view bytes) {
  std::string text;
  append_in_byte_alphabet(bytes, text);
  return text;
}

// `merges` are pairs of raw bytes, in rank order.
inline Vocabulary small_vocabulary(const std::vector<std::pair<std::string, std::string>>& merges,
                                   const std::vector<std::string>& control_tokens = {}) {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(in_byte_alphabet(std::string(1, static_cast<char>(byte))));
  }
  for (const auto& [left, right] : merges) {
    const std::string text = in_byte_alphabet(left + right);
    bool is_new = true;
    for (const std::string& token : vocabulary.tokens) is_new = is_new && token != text;
    if (is_new) vocabulary.tokens.push_back(text);
    vocabulary.merges.push_back({text, static_cast<uint32_t>(in_byte_alphabet(left).size())});
  }
  vocabulary.kinds.assign(vocabulary.tokens.size(), TokenKind::normal);
  for (const std::string& token : control_tokens) {
    vocabulary.added_tokens.push_back({.id = static_cast<int>(vocabulary.tokens.size())});
    vocabulary.tokens.push_back(token);
    vocabulary.kinds.push_back(TokenKind::control);
  }
  vocabulary.steps = {PatternSplit{.pattern = std::string(kGpt2Pattern)}};
  return vocabulary;
}

}  // namespace weft
