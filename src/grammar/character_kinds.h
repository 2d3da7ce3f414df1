#pragma once

// Characters in kinds that grammars seldom tell apart, such as the letters a to z. What a grammar says of a kind is
// said of many tokens at once.

#include <array>
#include <cstdint>
#include <span>

#include "grammar/characters.h"

namespace weft::grammar {

// A bit for each kind.
using KindSet = std::uint64_t;

// The kinds of ASCII: letters of either case, digits, and each other character. The others are those of UTF-8 with two,
// three and four bytes. No text has the last kind: it stands for bytes that are no character.
inline constexpr int kNoCharacter = 42, kKinds = kNoCharacter + 1;
inline constexpr KindSet kNoCharacters = KindSet{1} << kNoCharacter;

// The characters of one kind that differ in nothing but the bytes within these ranges, one for each byte.
struct CharacterRanges {
  int kind;
  std::uint8_t length;
  std::array<ByteRange, 4> bytes;
};

// All characters, those of a kind one after the other. Of control characters tab, line feed and carriage return alone
// have a kind.
std::span<const CharacterRanges> character_ranges();

}  // namespace weft::grammar
