// Bits: logic, bytes and fields.

#include <algorithm>

#include "tests/cuda/ptx/operations.h"

namespace weft::ptx {
namespace {

template <class T>
void add_logic(Operations& table, const std::string& type) {
  add(
      table, "and." + type, +[](T x, T y) { return static_cast<T>(x & y); });
  add(
      table, "or." + type, +[](T x, T y) { return static_cast<T>(x | y); });
  add(
      table, "xor." + type, +[](T x, T y) { return static_cast<T>(x ^ y); });
  if constexpr (std::is_same_v<T, bool>) {
    add(
        table, "not." + type, +[](bool x) { return !x; });
  } else {
    add(
        table, "not." + type, +[](T x) { return static_cast<T>(~x); });
  }
}

// Four of the eight bytes of y:x, each by four bits of the selector, the uppermost of which asks for the byte's sign.
std::uint32_t permuted(std::uint32_t x, std::uint32_t y, std::uint32_t selector) {
  const std::uint64_t all = x | static_cast<std::uint64_t>(y) << 32;
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t choice = selector >> 4 * i & 0xf;
    auto byte = static_cast<std::uint32_t>(all >> 8 * (choice & 7) & 0xff);
    if ((choice & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}

std::uint32_t field(std::uint32_t x, std::uint32_t first, std::uint32_t count) {
  first &= 0xff;
  count &= 0xff;
  if (first >= 32 || count == 0) return 0;
  return x >> first & (count >= 32 ? 0xffffffffu : (1u << count) - 1);
}

// Replaces `count` bits of `into` by bits << first.
template <class T>
T inserted(T bits, T into, std::uint32_t first, std::uint32_t count) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  first &= 0xff;
  count &= 0xff;
  if (first >= kBits || count == 0) return into;
  const T mask = (count >= kBits ? ~T{0} : (T{1} << count) - 1) << first;
  return (into & ~mask) | (bits << first & mask);
}

// Bit i of the result is the bit of `table` that bits i of x, y and z number.
std::uint32_t looked_up(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t table) {
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < 32; ++i) {
    const std::uint32_t number = (x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1);
    result |= (table >> number & 1) << i;
  }
  return result;
}

}  // namespace

void add_logic_operations(Operations& table) {
  using Word = std::uint32_t;
  add_logic<bool>(table, "pred");
  add_logic<std::uint16_t>(table, "b16");
  add_logic<std::uint32_t>(table, "b32");
  add_logic<std::uint64_t>(table, "b64");
  add(table, "prmt.b32", &permuted);
  add(table, "bfe.u32", &field);
  add(table, "bfi.b32", &inserted<std::uint32_t>);
  add(table, "bfi.b64", &inserted<std::uint64_t>);
  add(table, "lop3.b32", &looked_up);
  add(
      table, "popc.b32", +[](Word x) { return static_cast<Word>(std::popcount(x)); });
  add(
      table, "clz.b32", +[](Word x) { return static_cast<Word>(std::countl_zero(x)); });
  add(
      table, "brev.b32", +[](Word x) {
        Word result = 0;
        for (int i = 0; i < 32; ++i) result |= (x >> i & 1) << (31 - i);
        return result;
      });
  // The upper or lower word of hi:lo, shifted.
  add(
      table, "shf.l.wrap.b32", +[](Word low, Word high, Word by) {
        return static_cast<Word>((static_cast<std::uint64_t>(high) << 32 | low) << (by & 31) >> 32);
      });
  add(
      table, "shf.r.wrap.b32", +[](Word low, Word high, Word by) {
        return static_cast<Word>((static_cast<std::uint64_t>(high) << 32 | low) >> (by & 31));
      });

  add(
      table, "mov.pred", +[](bool x) { return x; });
  for (const char* type : {"b16", "u16", "s16"})
    add(
        table, std::string("mov.") + type, +[](std::uint16_t x) { return x; });
  for (const char* type : {"b32", "u32", "s32", "f32"})
    add(
        table, std::string("mov.") + type, +[](std::uint32_t x) { return x; });
  for (const char* type : {"b64", "u64", "s64", "f64"})
    add(
        table, std::string("mov.") + type, +[](std::uint64_t x) { return x; });
}

}  // namespace weft::ptx
