#pragma once

// The names of a table's rows, as messages and the help list them.

#include <string>

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

}  // namespace weft
