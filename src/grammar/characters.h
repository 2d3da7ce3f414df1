#pragma once

// Sets of characters (Unicode scalar values), and their bytes in UTF-8.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace weft::grammar {

inline constexpr char32_t kLastCharacter = 0x10FFFF;
inline constexpr char32_t kFirstSurrogate = 0xD800, kFirstLowSurrogate = 0xDC00, kLastSurrogate = 0xDFFF;

struct CharacterRange {
  char32_t first, last;
  friend bool operator==(const CharacterRange&, const CharacterRange&) = default;
};

// Ascending ranges that neither overlap nor touch, without surrogates.
using Characters = std::vector<CharacterRange>;

// The set that the ranges cover.
Characters characters_of(std::vector<CharacterRange> ranges);
Characters complement(const Characters& set);
Characters intersection(const Characters& a, const Characters& b);
bool contains(const Characters& set, char32_t character);

struct ByteRange {
  std::uint8_t first, last;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Calls `visit` with sequences of one to four byte ranges, which together are the UTF-8 of exactly these characters.
void for_each_utf8_sequence(const Characters& set, const std::function<void(std::span<const ByteRange>)>& visit);

}  // namespace weft::grammar
