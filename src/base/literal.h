#pragma once

// A string literal: it exists as long as the program and never changes.

#include <string_view>

namespace weft {

class Literal {
 public:
  // The constructor reads the length at compile time, which only constant text allows.
  consteval Literal(const char* text) : text_(text) { static_cast<void>(std::string_view(text).size()); }  // NOLINT

  const char* text() const { return text_; }
  operator std::string_view() const { return text_; }  // NOLINT: it is one
  // Compares addresses first. Equal literals in two files may have two addresses, so the text decides.
  friend bool operator==(Literal a, Literal b) {
    return a.text_ == b.text_ || std::string_view(a) == std::string_view(b);
  }

 private:
  const char* text_;
};

}  // namespace weft
