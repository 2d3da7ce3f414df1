#include "grammar/character_kinds.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace weft::grammar {
namespace {

std::vector<CharacterRanges> make_ranges() {
  std::vector<CharacterRanges> all;
  int kind = 0;
  const auto add = [&](char32_t first, char32_t last) {
    for_each_utf8_sequence(characters_of({{first, last}}), [&](std::span<const ByteRange> bytes) {
      CharacterRanges ranges{.kind = kind, .length = static_cast<std::uint8_t>(bytes.size()), .bytes = {}};
      std::copy(bytes.begin(), bytes.end(), ranges.bytes.begin());
      all.push_back(ranges);
    });
    ++kind;
  };
  add('a', 'z');
  add('A', 'Z');
  add('0', '9');
  for (const char32_t space : {'\t', '\n', '\r'}) add(space, space);
  for (char32_t c = ' '; c <= '~'; ++c) {
    const bool is_known = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_known) add(c, c);
  }
  add(0x80, 0x7FF);
  add(0x800, 0xFFFF);
  add(0x10000, kLastCharacter);
  CHECK(kind == kNoCharacter, "{} kinds", kind);
  return all;
}

}  // namespace

std::span<const CharacterRanges> character_ranges() {
  static const std::vector<CharacterRanges> kRanges = make_ranges();
  return kRanges;
}

}  // namespace weft::grammar
