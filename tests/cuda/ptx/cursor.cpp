#include "tests/cuda/ptx/cursor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace weft::ptx {
namespace {

bool parse_digits(std::string_view digits, int base, std::uint64_t& value) {
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  return !digits.empty() && problem == std::errc() && end == digits.data() + digits.size();
}

constexpr std::uint64_t kMost = std::uint64_t{1} << 31;

}  // namespace

bool parse_number(std::string_view word, std::uint64_t& bits, std::uint8_t& width) {
  width = 0;
  const std::string_view front = word.substr(0, 2), rest = word.size() > 2 ? word.substr(2) : "";
  if (front == "0f" || front == "0F") {
    width = 32;
    return rest.size() == 8 && parse_digits(rest, 16, bits);
  }
  if (front == "0d" || front == "0D") {
    width = 64;
    return rest.size() == 16 && parse_digits(rest, 16, bits);
  }
  if (word.size() > 1 && word.back() == 'U') word.remove_suffix(1);
  if (front == "0x" || front == "0X") return parse_digits(word.substr(2), 16, bits);
  // With a leading zero it would be octal, which no compiler writes.
  if (word.size() > 1 && word[0] == '0') return false;
  return parse_digits(word, 10, bits);
}

std::uint64_t Cursor::count(std::string_view what) {
  std::uint64_t bits = 0;
  std::uint8_t width = 0;
  if (peek().kind != TokenKind::word || !parse_number(peek().text, bits, width) || width != 0 || bits >= kMost)
    fail_wanted(what);
  take();
  return bits;
}

Declared take_declared(Cursor& cursor) {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 14> kTypes = {{{".b8", 1},
                                                                                         {".u8", 1},
                                                                                         {".s8", 1},
                                                                                         {".b16", 2},
                                                                                         {".u16", 2},
                                                                                         {".s16", 2},
                                                                                         {".b32", 4},
                                                                                         {".u32", 4},
                                                                                         {".s32", 4},
                                                                                         {".f32", 4},
                                                                                         {".b64", 8},
                                                                                         {".u64", 8},
                                                                                         {".s64", 8},
                                                                                         {".f64", 8}}};
  Declared declared;
  if (cursor.take_if(".align")) {
    declared.alignment = cursor.count("an alignment");
    if (declared.alignment == 0 || (declared.alignment & (declared.alignment - 1)) != 0)
      cursor.fail("an alignment must be a power of two");
  }
  for (const auto& [type, bytes] : kTypes)
    if (cursor.is(type)) declared.bytes = bytes;
  if (declared.bytes == 0) cursor.fail_wanted("a type of 8 to 64 bits");
  cursor.take();
  declared.alignment = std::max(declared.alignment, declared.bytes);
  declared.name = cursor.word("a name");
  if (cursor.take_if("[")) {
    declared.bytes *= cursor.count("a number of elements");
    cursor.expect("]");
  }
  return declared;
}

}  // namespace weft::ptx
