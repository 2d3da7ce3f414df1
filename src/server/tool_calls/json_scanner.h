#pragma once

// Follows a JSON value (RFC 8259) character by character: where it ends, and the first character that cannot be part of
// it.

#include <cstddef>
#include <cstdint>
#include <string>

namespace weft {

class JsonScanner {
 public:
  enum class Status : std::uint8_t { open, complete, wrong };

  // White space before the value belongs to it. A number that is the whole value is never complete. At most 128 levels.
  // No call follows one that did not return `open`.
  Status push(char c);

  // Lists and objects that are open.
  std::size_t depth() const { return closers_.size(); }
  // The next character, unless it is white space, begins a value; in a list it may also end the list.
  bool expects_value() const { return state_ == State::value || state_ == State::first_item; }
  // The next character, unless it is white space, begins the key of a member; it may also end the object.
  bool expects_key() const { return state_ == State::key || state_ == State::first_key; }
  bool is_after_key() const { return state_ == State::colon; }
  bool is_after_value() const { return state_ == State::after_value; }
  bool is_in_number() const { return state_ >= State::minus; }

 private:
  enum class State : std::uint8_t {
    value,
    first_item,
    first_key,
    key,
    colon,
    after_value,
    string,
    escape,
    unicode,
    literal,
    wrong,
    // Within a number, after its:
    minus,
    zero,
    integer,
    point,
    fraction,
    exponent,
    exponent_sign,
    exponent_digits,
  };

  Status push_string(char c);
  Status push_number(char c);
  Status push_structure(char c);
  Status begin_value(char c);
  Status open(char closer, State first);
  Status close(char c);
  Status end_value();
  Status go(State state);
  Status fail();

  State state_ = State::value;
  std::string closers_;  // of what is open, the innermost last
  bool is_key_ = false;  // the string is a key
  int digits_left_ = 0;  // of \uXXXX
  const char* literal_ = "";
};

}  // namespace weft
