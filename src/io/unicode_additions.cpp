#include "io/unicode_additions.h"

#include <algorithm>

#include <fmt/core.h>

namespace weft {
namespace {

struct Addition {
  CharacterRange range;
  std::string_view category;
  std::string_view script;
};

#define WEFT_UNICODE_ADDITION(first, last, category, script) {{first, last}, category, script},
constexpr Addition kAdditions[] = {
#include "io/unicode_additions.def"
};
#undef WEFT_UNICODE_ADDITION

// Names are compared as PCRE2 and Oniguruma do it: without letter case, spaces, underscores and hyphens.
std::string loose_name(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

}  // namespace

std::vector<CharacterRange> unicode_additions(std::string_view property) {
  const std::string wanted = loose_name(property);
  std::vector<CharacterRange> ranges;
  if (wanted.empty()) return ranges;
  for (const Addition& one : kAdditions) {
    const bool has_category = wanted.size() <= 2 && loose_name(one.category).starts_with(wanted);
    if (has_category || loose_name(one.script) == wanted) ranges.push_back(one.range);
  }
  return ranges;
}

std::string class_text(std::vector<CharacterRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](CharacterRange a, CharacterRange b) { return a.first < b.first; });
  std::string text;
  for (size_t i = 0; i < ranges.size();) {
    CharacterRange joined = ranges[i++];
    for (; i < ranges.size() && ranges[i].first <= joined.last + 1; ++i)
      joined.last = std::max(joined.last, ranges[i].last);
    text += joined.first == joined.last ? fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(joined.first))
                                        : fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<uint32_t>(joined.first),
                                                      static_cast<uint32_t>(joined.last));
  }
  return text;
}

}  // namespace weft
