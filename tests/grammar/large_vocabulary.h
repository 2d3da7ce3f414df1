#pragma once

// A made-up vocabulary of the size of the largest ones.

#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/utf8.h"

namespace weft {

inline constexpr std::size_t kLargeVocabulary = 152'000;

// Different texts of two bytes and more: words with and without a space before them, punctuation of JSON, digits, and
// characters of several bytes.
inline std::vector<std::string> large_vocabulary(std::size_t count = kLargeVocabulary) {
  std::mt19937 random(11);
  const auto below = [&](std::size_t size) { return static_cast<std::size_t>(random()) % size; };
  const auto drawn = [&](std::string_view characters, std::size_t longest) {
    std::string text;
    for (std::size_t left = 1 + below(longest); left > 0; --left) text += characters[below(characters.size())];
    return text;
  };
  std::unordered_set<std::string> known;
  std::vector<std::string> texts;
  while (texts.size() < count) {
    const std::size_t kind = below(20);
    std::string text = kind % 2 == 0 ? " " : "";
    if (kind < 14) {
      text += drawn("abcdefghijklmnopqrstuvwxyz", 9);
    } else if (kind < 16) {
      text += drawn("{}[],:\"\\ \n", 5);
    } else if (kind < 17) {
      text += drawn("0123456789.-e", 4);
    } else {
      const char32_t first = kind == 17 ? U'\u0430' : U'\u4E00';
      for (std::size_t left = 1 + below(4); left > 0; --left)
        append_utf8(first + static_cast<char32_t>(below(kind == 17 ? 32 : 3000)), text);
    }
    if (text.size() > 1 && known.insert(text).second) texts.push_back(text);
  }
  return texts;
}

}  // namespace weft
