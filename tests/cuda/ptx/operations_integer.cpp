// Arithmetic and comparisons of whole numbers, which wrap around.

#include <algorithm>
#include <limits>

#include "tests/cuda/ptx/operations.h"

namespace weft::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Wide enough that no product is promoted to a signed type.
template <class T>
T product(T x, T y) {
  return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
}

// The result of a device for a division by 0.
template <class T>
T quotient(T x, T y) {
  if (y == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(x));
  }
  return static_cast<T>(x / y);
}
template <class T>
T remainder(T x, T y) {
  if (y == 0) return x;
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return 0;
  }
  return static_cast<T>(x % y);
}

template <class T>
void add_whole_arithmetic(Operations& table, const std::string& type) {
  using U = Unsigned<T>;
  add(
      table, "add." + type, +[](T x, T y) { return static_cast<T>(static_cast<U>(x) + static_cast<U>(y)); });
  add(
      table, "sub." + type, +[](T x, T y) { return static_cast<T>(static_cast<U>(x) - static_cast<U>(y)); });
  add(
      table, "mul.lo." + type, +[](T x, T y) { return product(x, y); });
  add(
      table, "mad.lo." + type,
      +[](T x, T y, T z) { return static_cast<T>(static_cast<U>(product(x, y)) + static_cast<U>(z)); });
  add(
      table, "div." + type, +[](T x, T y) { return quotient(x, y); });
  add(
      table, "rem." + type, +[](T x, T y) { return remainder(x, y); });
  add(
      table, "max." + type, +[](T x, T y) { return std::max(x, y); });
  add(
      table, "min." + type, +[](T x, T y) { return std::min(x, y); });
  if constexpr (std::is_signed_v<T>) {
    add(
        table, "neg." + type, +[](T x) { return static_cast<T>(U{0} - static_cast<U>(x)); });
    add(
        table, "abs." + type, +[](T x) { return x < 0 ? static_cast<T>(U{0} - static_cast<U>(x)) : x; });
  }
}

// The whole product of two T, and the upper half of it.
template <class T, class Twice>
void add_wide(Operations& table, const std::string& type) {
  add(
      table, "mul.wide." + type, +[](T x, T y) { return static_cast<Twice>(Twice{x} * Twice{y}); });
  add(
      table, "mad.wide." + type, +[](T x, T y, Twice z) {
        return static_cast<Twice>(static_cast<Unsigned<Twice>>(Twice{x} * Twice{y}) + static_cast<Unsigned<Twice>>(z));
      });
  add(
      table, "mul.hi." + type,
      +[](T x, T y) { return static_cast<T>((Twice{x} * Twice{y}) >> std::numeric_limits<Unsigned<T>>::digits); });
}

template <class T>
void add_whole_comparisons(Operations& table, const std::string& type) {
  add(
      table, "setp.eq." + type, +[](T x, T y) { return x == y; });
  add(
      table, "setp.ne." + type, +[](T x, T y) { return x != y; });
  add(
      table, "setp.lt." + type, +[](T x, T y) { return x < y; });
  add(
      table, "setp.le." + type, +[](T x, T y) { return x <= y; });
  add(
      table, "setp.gt." + type, +[](T x, T y) { return x > y; });
  add(
      table, "setp.ge." + type, +[](T x, T y) { return x >= y; });
}

template <class T>
void add_equality(Operations& table, const std::string& type) {
  add(
      table, "setp.eq." + type, +[](T x, T y) { return x == y; });
  add(
      table, "setp.ne." + type, +[](T x, T y) { return x != y; });
  add(
      table, "selp." + type, +[](T x, T y, bool first) { return first ? x : y; });
}

template <class T>
void add_whole_type(Operations& table, const std::string& type) {
  add_whole_arithmetic<T>(table, type);
  add_whole_comparisons<T>(table, type);
  add(
      table, "selp." + type, +[](T x, T y, bool first) { return first ? x : y; });
}

// Shifts by the width or more give 0, or copies of the sign.
template <class T>
T shifted_left(T x, std::uint32_t by) {
  return by >= sizeof(T) * 8 ? T{0} : static_cast<T>(x << by);
}
template <class T>
T shifted_right(T x, std::uint32_t by) {
  constexpr std::uint32_t kBits = sizeof(T) * 8;
  if (by < kBits) return static_cast<T>(x >> by);
  return std::is_signed_v<T> && x < T{0} ? static_cast<T>(-1) : T{0};
}

template <class T>
void add_shifts(Operations& table, const std::string& bits) {
  using S = std::make_signed_t<T>;
  add(
      table, "shl.b" + bits, +[](T x, std::uint32_t by) { return shifted_left(x, by); });
  for (const char* type : {"shr.u", "shr.b"})
    add(
        table, type + bits, +[](T x, std::uint32_t by) { return shifted_right(x, by); });
  add(
      table, "shr.s" + bits, +[](S x, std::uint32_t by) { return shifted_right(x, by); });
}

}  // namespace

void add_integer_operations(Operations& table) {
  add_whole_type<std::uint16_t>(table, "u16");
  add_whole_type<std::int16_t>(table, "s16");
  add_whole_type<std::uint32_t>(table, "u32");
  add_whole_type<std::int32_t>(table, "s32");
  add_whole_type<std::uint64_t>(table, "u64");
  add_whole_type<std::int64_t>(table, "s64");
  add_equality<std::uint16_t>(table, "b16");
  add_equality<std::uint32_t>(table, "b32");
  add_equality<std::uint64_t>(table, "b64");
  add_wide<std::uint16_t, std::uint32_t>(table, "u16");
  add_wide<std::int16_t, std::int32_t>(table, "s16");
  add_wide<std::uint32_t, std::uint64_t>(table, "u32");
  add_wide<std::int32_t, std::int64_t>(table, "s32");
  add(
      table, "mul.hi.s64",
      +[](std::int64_t x, std::int64_t y) { return static_cast<std::int64_t>((__int128{x} * y) >> 64); });
  add(
      table, "mul.hi.u64", +[](std::uint64_t x, std::uint64_t y) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(x) * y) >> 64);
      });
  add_shifts<std::uint16_t>(table, "16");
  add_shifts<std::uint32_t>(table, "32");
  add_shifts<std::uint64_t>(table, "64");
}

}  // namespace weft::ptx
