#include "io/unicode_differences.h"

#include <algorithm>
#include <iterator>

namespace weft {
namespace {

struct Difference {
  char32_t first, last;
  CharacterProperty property;
};

#define WEFT_UNICODE_DIFFERENCE(first, last, property) {first, last, CharacterProperty::property},
constexpr Difference kDifferences[] = {
#include "io/unicode_differences.def"
};
#undef WEFT_UNICODE_DIFFERENCE

constexpr bool comes_after(const Difference& one, const Difference& other) {
  return one.property != other.property ? one.property > other.property : one.first > other.last;
}
static_assert(std::is_sorted(std::begin(kDifferences), std::end(kDifferences),
                             [](const Difference& a, const Difference& b) { return comes_after(b, a); }));

}  // namespace

bool is_different(char32_t character, CharacterProperty property) {
  const Difference wanted{character, character, property};
  const auto* const at = std::lower_bound(std::begin(kDifferences), std::end(kDifferences), wanted,
                                          [](const Difference& a, const Difference& b) { return comes_after(b, a); });
  return at != std::end(kDifferences) && !comes_after(*at, wanted);
}

std::vector<CharacterRange> different_characters(CharacterProperty property) {
  std::vector<CharacterRange> ranges;
  for (const Difference& one : kDifferences)
    if (one.property == property) ranges.push_back({one.first, one.last});
  return ranges;
}

}  // namespace weft
