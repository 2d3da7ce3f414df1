#include "tensor/attribute_parser.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "tensor/dim_parser.h"
#include "tensor/text_cursor.h"

namespace weft {
namespace {

constexpr int kMaxListDepth = 32;

void append_utf8(std::string& into, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { into += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

class AttributeParser {
 public:
  AttributeParser(std::string_view text, std::size_t& position, const std::set<std::string>* symbols)
      : text_(text), position_(position), cursor_(text, position), symbols_(symbols) {}

  Attribute value(int depth) {
    cursor_.skip_blanks();
    const char c = cursor_.peek();
    if (c == '"') return quoted();
    if (c == '[') return list(depth);
    if (is_digit(c) || c == '-') return number();
    if (c == '(' || c == '?') return parse_dim(text_, position_);
    const std::string_view word = cursor_.peek_word();
    if (word.empty()) cursor_.fail("a value");
    return named(word);
  }

 private:
  Attribute list(int depth) {
    if (depth >= kMaxListDepth) cursor_.fail(fmt::format("lists nested at most {} deep", kMaxListDepth));
    cursor_.expect('[');
    AttributeList elements;
    if (cursor_.accept(']')) return elements;
    do elements.push_back(value(depth + 1));
    while (cursor_.accept(','));
    cursor_.expect(']');
    return elements;
  }

  Attribute number() {
    const std::string_view rest = cursor_.rest();
    std::size_t end = rest[0] == '-' ? 1 : 0;
    const std::string_view unsigned_part = rest.substr(end);
    if (end == 1 && (unsigned_part.starts_with("inf") || unsigned_part.starts_with("nan"))) {
      cursor_.take();
      return cursor_.word() == "inf" ? -std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::quiet_NaN();
    }
    while (end < rest.size() && is_digit(rest[end])) ++end;
    const bool is_float = end < rest.size() && (rest[end] == '.' || rest[end] == 'e' || rest[end] == 'E');
    if (!is_float) return parse_dim(text_, position_);
    double value = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) cursor_.fail("a float that fits 64 bits");
    position_ += static_cast<std::size_t>(stop - rest.data());
    return value;
  }

  Attribute named(std::string_view word) {
    if (word == "align" || word == "ceildiv" || word == "floordiv") return parse_dim(text_, position_);
    const std::size_t start = position_;
    cursor_.word();
    if (word == "true") return true;
    if (word == "false") return false;
    if (word == "none") return Attribute();
    if (word == "inf") return std::numeric_limits<double>::infinity();
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (const std::optional<DType> dtype = dtype_from_text(word)) return *dtype;
    if (!is_symbol(word) && !operator_follows()) return EnumWord{std::string(word)};
    position_ = start;
    return parse_dim(text_, position_);
  }

  bool is_symbol(std::string_view word) const {
    if (symbols_ != nullptr) return symbols_->contains(std::string(word));
    return word.size() > 1 && word[0] == 's' && std::all_of(word.begin() + 1, word.end(), is_digit);
  }

  bool operator_follows() {
    const std::size_t start = position_;
    cursor_.skip_blanks();
    const std::string_view rest = cursor_.rest();
    position_ = start;
    return !rest.empty() && (rest[0] == '+' || rest[0] == '*' || (rest[0] == '-' && !rest.starts_with("->")));
  }

  Attribute quoted() {
    cursor_.take();
    std::string value;
    for (;;) {
      const char c = cursor_.peek();
      if (cursor_.at_end() || c == '\n' || c == '\r') cursor_.fail("'\"' at the end of the string");
      if (c == '"') break;
      if (c == '\\') {
        escape(value);
      } else {
        value += cursor_.take();
      }
    }
    cursor_.take();
    return value;
  }

  void escape(std::string& into) {
    const std::size_t start = position_;
    cursor_.take();
    const char c = cursor_.take();
    if (c == '"' || c == '\\') {
      into += c;
      return;
    }
    if (c == 'n') {
      into += '\n';
      return;
    }
    if (c == 'u' && cursor_.peek() == '{') {
      cursor_.take();
      const std::string_view rest = cursor_.rest();
      std::uint32_t code = 0;
      const auto [stop, error] =
          std::from_chars(rest.data(), rest.data() + std::min<std::size_t>(rest.size(), 6), code, 16);
      const auto length = static_cast<std::size_t>(stop - rest.data());
      const bool is_character = error == std::errc() && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
      if (is_character && length < rest.size() && rest[length] == '}') {
        position_ += length + 1;
        append_utf8(into, code);
        return;
      }
    }
    position_ = start;
    cursor_.fail("one of \\\" \\\\ \\n \\u{hex}");
  }

  std::string_view text_;
  std::size_t& position_;
  TextCursor cursor_;
  const std::set<std::string>* symbols_;
};

}  // namespace

Attribute parse_attribute(std::string_view text, std::size_t& position, const std::set<std::string>* symbols) {
  return AttributeParser(text, position, symbols).value(0);
}

Attribute parse_attribute(std::string_view text) {
  std::size_t position = 0;
  Attribute value = parse_attribute(text, position);
  TextCursor cursor(text, position);
  cursor.skip_blanks();
  if (!cursor.at_end()) cursor.fail("the end of the value");
  return value;
}

}  // namespace weft
