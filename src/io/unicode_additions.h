#pragma once

// The code points that Unicode assigned after version 14. The installed PCRE2 may have the tables of version 14, and
// the reference tokenizers have those of version 16.

#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct CharacterRange {
  char32_t first = 0;
  char32_t last = 0;
};

// Those of a general category ("L", "Lu") or of a script ("Han"), in any letter case. Empty for other names.
std::vector<CharacterRange> unicode_additions(std::string_view property);

// The ranges as text inside a character class, sorted and joined.
std::string class_text(std::vector<CharacterRange> ranges);

}  // namespace weft
