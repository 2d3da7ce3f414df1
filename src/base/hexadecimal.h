#pragma once

namespace weft {

// The value of a hexadecimal digit, lower or upper case; -1 for any other byte.
constexpr int hexadecimal_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace weft
