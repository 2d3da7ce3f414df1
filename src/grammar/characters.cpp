#include "grammar/characters.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/utf8.h"

namespace weft::grammar {
namespace {

using VisitSequence = std::function<void(std::span<const ByteRange>)>;

void append_range(Characters& set, CharacterRange range) {
  if (!set.empty() && range.first <= set.back().last + 1) {
    set.back().last = std::max(set.back().last, range.last);
  } else {
    set.push_back(range);
  }
}

// Cuts the range until all characters of a part have the same number of bytes and each byte may take every value
// between that of the first and of the last character, whatever the other bytes are.
void split_utf8(char32_t first, char32_t last, const VisitSequence& visit) {
  for (const char32_t longest : {0x7Fu, 0x7FFu, 0xFFFFu}) {
    if (first > longest || last <= longest) continue;
    split_utf8(first, longest, visit);
    return split_utf8(longest + 1, last, visit);
  }
  for (int i = 1; last > 0x7F && i < 4; ++i) {
    const char32_t low = (char32_t{1} << (6 * i)) - 1;
    if ((first & ~low) == (last & ~low)) continue;
    if ((first & low) != 0) {
      split_utf8(first, first | low, visit);
      return split_utf8((first | low) + 1, last, visit);
    }
    if ((last & low) != low) {
      split_utf8(first, (last & ~low) - 1, visit);
      return split_utf8(last & ~low, last, visit);
    }
  }
  std::string a, b;
  append_utf8(first, a);
  append_utf8(last, b);
  std::array<ByteRange, 4> bytes;
  for (std::size_t i = 0; i < a.size(); ++i)
    bytes[i] = {static_cast<std::uint8_t>(a[i]), static_cast<std::uint8_t>(b[i])};
  visit({bytes.data(), a.size()});
}

}  // namespace

Characters characters_of(std::vector<CharacterRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharacterRange& a, const CharacterRange& b) { return a.first < b.first; });
  Characters set;
  for (const auto& [first, last] : ranges) {
    if (first < kFirstSurrogate && first <= last)
      append_range(set, {first, std::min(last, char32_t{kFirstSurrogate - 1})});
    const char32_t above = std::max(first, char32_t{kLastSurrogate + 1});
    if (last > kLastSurrogate) append_range(set, {above, std::min(last, kLastCharacter)});
  }
  return set;
}

Characters complement(const Characters& set) {
  std::vector<CharacterRange> ranges;
  char32_t next = 0;
  for (const auto& [first, last] : set) {
    if (first > next) ranges.push_back({next, first - 1});
    next = last + 1;
  }
  if (next <= kLastCharacter) ranges.push_back({next, kLastCharacter});
  return characters_of(std::move(ranges));
}

Characters intersection(const Characters& a, const Characters& b) {
  Characters set;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const char32_t first = std::max(a[i].first, b[j].first), last = std::min(a[i].last, b[j].last);
    if (first <= last) set.push_back({first, last});
    (a[i].last < b[j].last ? i : j) += 1;
  }
  return set;
}

bool contains(const Characters& set, char32_t character) {
  return std::any_of(set.begin(), set.end(),
                     [&](const CharacterRange& range) { return range.first <= character && character <= range.last; });
}

void for_each_utf8_sequence(const Characters& set, const VisitSequence& visit) {
  for (const auto& [first, last] : set) split_utf8(first, last, visit);
}

}  // namespace weft::grammar
