#include "io/jinja/text.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>
#include <utf8proc.h>

namespace weft::jinja {

namespace {

// A byte outside valid UTF-8 gets the code that Python's surrogateescape assigns.
constexpr char32_t kBrokenByte = 0xDC00;

bool is_surrogate(char32_t code) { return code >= 0xD800 && code < 0xE000; }

utf8proc_category_t category(char32_t code) {
  return is_surrogate(code) ? UTF8PROC_CATEGORY_CS : utf8proc_category(static_cast<int>(code));
}

bool is_number(char32_t code) {
  const auto kind = category(code);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}

struct Range {
  char32_t first;
  char32_t last;
};

// Characters with Unicode's Numeric_Type=Digit: superscripts, circled digits and similar ones.
constexpr Range kTypographicDigits[] = {
    {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
    {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
    {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
    {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A},
};

// Returns the byte count of the last character of a non-empty text.
std::size_t last_character_bytes(std::string_view text) {
  for (std::size_t bytes = std::min<std::size_t>(4, text.size()); bytes > 1; --bytes)
    if (character_at(text, text.size() - bytes).bytes == bytes) return bytes;
  return 1;
}

template <class Belongs>
std::string_view strip_where(std::string_view text, Side side, Belongs&& belongs) {
  if (side != Side::right) {
    while (!text.empty()) {
      const Character first = character_at(text, 0);
      if (!belongs(text.substr(0, first.bytes), first.code)) break;
      text.remove_prefix(first.bytes);
    }
  }
  if (side != Side::left) {
    while (!text.empty()) {
      const std::size_t bytes = last_character_bytes(text);
      const std::string_view last = text.substr(text.size() - bytes);
      if (!belongs(last, character_at(last, 0).code)) break;
      text.remove_suffix(bytes);
    }
  }
  return text;
}

bool ends_line(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

}  // namespace

Character character_at(std::string_view text, std::size_t position) {
  const auto first = static_cast<unsigned char>(text[position]);
  if (first < 0x80) return {first, 1};
  const std::size_t rest = std::min<std::size_t>(4, text.size() - position);
  utf8proc_int32_t code = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + position),
                                      static_cast<utf8proc_ssize_t>(rest), &code);
  if (bytes <= 0) return {kBrokenByte + first, 1};
  return {static_cast<char32_t>(code), static_cast<std::size_t>(bytes)};
}

void append_character(std::string& text, char32_t code) {
  if (code < 0x80 || (code >= kBrokenByte + 0x80 && code <= kBrokenByte + 0xFF)) {
    text.push_back(static_cast<char>(code & 0xFF));
    return;
  }
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

std::size_t character_count(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t position = 0; position < text.size(); ++count) position += character_at(text, position).bytes;
  return count;
}

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  for (std::size_t position = 0; position < text.size(); position += characters.back().size())
    characters.push_back(text.substr(position, character_at(text, position).bytes));
  return characters;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

bool is_alphabetic(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_decimal(char32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t code) {
  return is_decimal(code) ||
         std::any_of(std::begin(kTypographicDigits), std::end(kTypographicDigits),
                     [code](const Range& range) { return code >= range.first && code <= range.last; });
}

bool is_word(char32_t code) { return code == '_' || is_alphabetic(code) || is_number(code); }

bool is_printable(char32_t code) {
  if (code == ' ') return true;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_identifier(std::string_view text) {
  for (std::size_t position = 0; position < text.size();) {
    const Character character = character_at(text, position);
    const auto kind = category(character.code);
    const bool starts = character.code == '_' || is_alphabetic(character.code) || kind == UTF8PROC_CATEGORY_NL;
    const bool continues = starts || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_MN ||
                           kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_PC;
    if (position == 0 ? !starts : !continues) return false;
    position += character.bytes;
  }
  return !text.empty();
}

std::string_view strip_space(std::string_view text, Side side) {
  return strip_where(text, side, [](std::string_view, char32_t code) { return is_space(code); });
}

std::string_view strip_set(std::string_view text, std::string_view set, Side side) {
  auto members = split_characters(set);
  std::sort(members.begin(), members.end());
  return strip_where(text, side, [&](std::string_view character, char32_t) {
    return std::binary_search(members.begin(), members.end(), character);
  });
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t position = 0; position < text.size();) {
    const Character character = character_at(text, position);
    std::size_t next = position + character.bytes;
    if (ends_line(character.code)) {
      if (character.code == '\r' && next < text.size() && text[next] == '\n') ++next;
      lines.push_back(text.substr(begin, (keep_ends ? next : position) - begin));
      begin = next;
    }
    position = next;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string quote(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char mark = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, mark);
  for (std::size_t position = 0; position < text.size();) {
    const auto [code, bytes] = character_at(text, position);
    if (code == '\\' || code == static_cast<char32_t>(mark)) {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (is_printable(code)) {
      out += text.substr(position, bytes);
    } else if (code < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
    } else if (code < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<unsigned>(code));
    }
    position += bytes;
  }
  return out + mark;
}

}  // namespace weft::jinja
