#pragma once

// The names of a table's rows, as messages and the help list them.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace weft {

// With commas between them.
template <class Rows, class NameOf>
std::string names_of(const Rows& rows, NameOf name_of) {
  std::string names;
  for (const auto& row : rows) {
    if (!names.empty()) names += ", ";
    names += name_of(row);
  }
  return names;
}

// Whether it is one of the words between the blanks.
inline bool has_word(std::string_view words, std::string_view wanted) {
  const std::vector<std::string> all = split_text(words, ' ');
  return !wanted.empty() && std::find(all.begin(), all.end(), wanted) != all.end();
}

}  // namespace weft
