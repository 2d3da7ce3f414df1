#pragma once

// Text that stands in the program: it is there as long as the program and never changes.

#include <string_view>

namespace weft {

class Literal {
 public:
  // The length is read while compiling, which only text that never changes allows.
  consteval Literal(const char* text) : text_(text) { static_cast<void>(std::string_view(text).size()); }  // NOLINT

  const char* text() const { return text_; }
  operator std::string_view() const { return text_; }  // NOLINT: it is one
  // At once where both are one literal, which need not be one in two files.
  friend bool operator==(Literal a, Literal b) {
    return a.text_ == b.text_ || std::string_view(a) == std::string_view(b);
  }

 private:
  const char* text_;
};

}  // namespace weft
