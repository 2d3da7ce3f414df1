#include "server/tool_calls/json_scanner.h"

#include <string_view>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kDeepest = 128;  // as of requests

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

JsonScanner::Status JsonScanner::go(State state) {
  state_ = state;
  return Status::open;
}

JsonScanner::Status JsonScanner::fail() {
  state_ = State::wrong;
  return Status::wrong;
}

JsonScanner::Status JsonScanner::end_value() {
  state_ = State::after_value;
  return closers_.empty() ? Status::complete : Status::open;
}

JsonScanner::Status JsonScanner::push(char c) {
  switch (state_) {
    case State::string:
    case State::escape:
    case State::unicode:
      return push_string(c);
    case State::literal:
      if (c != *literal_++) return fail();
      return *literal_ == '\0' ? end_value() : Status::open;
    case State::wrong:
      return Status::wrong;
    default:
      return is_in_number() ? push_number(c) : push_structure(c);
  }
}

JsonScanner::Status JsonScanner::push_string(char c) {
  if (state_ == State::unicode) {
    if (!is_hex(c)) return fail();
    return --digits_left_ == 0 ? go(State::string) : Status::open;
  }
  if (state_ == State::escape) {
    digits_left_ = 4;
    if (c == 'u') return go(State::unicode);
    return std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos ? fail() : go(State::string);
  }
  if (c == '\\') return go(State::escape);
  if (c == '"') return is_key_ ? go(State::colon) : end_value();
  return static_cast<unsigned char>(c) < ' ' ? fail() : Status::open;
}

JsonScanner::Status JsonScanner::push_number(char c) {
  const bool has_digit = is_digit(c), has_exponent = c == 'e' || c == 'E';
  switch (state_) {
    case State::minus:
      return has_digit ? go(c == '0' ? State::zero : State::integer) : fail();
    case State::zero:
    case State::integer:
      if (has_digit) return state_ == State::integer ? Status::open : fail();
      if (c == '.') return go(State::point);
      if (has_exponent) return go(State::exponent);
      break;
    case State::point:
      return has_digit ? go(State::fraction) : fail();
    case State::fraction:
      if (has_digit) return Status::open;
      if (has_exponent) return go(State::exponent);
      break;
    case State::exponent:
      if (c == '+' || c == '-') return go(State::exponent_sign);
      return has_digit ? go(State::exponent_digits) : fail();
    case State::exponent_sign:
      return has_digit ? go(State::exponent_digits) : fail();
    default:
      if (has_digit) return Status::open;
      break;
  }
  if (closers_.empty()) return fail();
  end_value();
  return push_structure(c);
}

JsonScanner::Status JsonScanner::push_structure(char c) {
  if (c == ' ' || c == '\n' || c == '\r' || c == '\t') return Status::open;
  switch (state_) {
    case State::first_item:
      if (c == ']') return close(c);
      return begin_value(c);
    case State::value:
      return begin_value(c);
    case State::first_key:
      if (c == '}') return close(c);
      [[fallthrough]];
    case State::key:
      is_key_ = true;
      return c == '"' ? go(State::string) : fail();
    case State::colon:
      return c == ':' ? go(State::value) : fail();
    default:
      if (closers_.empty()) return fail();
      if (c == ',') return go(closers_.back() == '}' ? State::key : State::value);
      return close(c);
  }
}

JsonScanner::Status JsonScanner::begin_value(char c) {
  is_key_ = false;
  switch (c) {
    case '{':
      return open('}', State::first_key);
    case '[':
      return open(']', State::first_item);
    case '"':
      return go(State::string);
    case '-':
      return go(State::minus);
    case 't':
      literal_ = "rue";
      return go(State::literal);
    case 'f':
      literal_ = "alse";
      return go(State::literal);
    case 'n':
      literal_ = "ull";
      return go(State::literal);
    default:
      return is_digit(c) ? go(c == '0' ? State::zero : State::integer) : fail();
  }
}

JsonScanner::Status JsonScanner::open(char closer, State first) {
  if (closers_.size() == kDeepest) return fail();
  closers_ += closer;
  return go(first);
}

JsonScanner::Status JsonScanner::close(char c) {
  if (closers_.back() != c) return fail();
  closers_.pop_back();
  return end_value();
}

}  // namespace weft
