// Arithmetic on f32 and f64. Only instructions with explicit rounding are known: ptxas may contract a plain add or mul,
// which changes bits. NaN has the device's bits.
//
// The approximate functions are those of the emulator: the exact value, moved within its documented bound as
// emulator/approximation.h is set.

#include <cmath>
#include <limits>

#include "emulator/approximation.h"
#include "tests/cuda/ptx/operations.h"

namespace weft::ptx {
namespace {

template <class T>
T with_device_nan(T x) {
  if (x == x) return x;
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<float>(0x7fffffffu);
  } else {
    return std::bit_cast<double>(0x7fffffffffffffffu);
  }
}

// The other one if one is NaN; -0 is below 0.
template <class T>
T larger(T x, T y) {
  if (x != x || y != y) return with_device_nan(x != x ? y : x);
  return x > y || (x == y && !std::signbit(x)) ? x : y;
}
template <class T>
T smaller(T x, T y) {
  if (x != x || y != y) return with_device_nan(x != x ? y : x);
  return x < y || (x == y && std::signbit(x)) ? x : y;
}

template <class T>
void add_float_arithmetic(Operations& table, const std::string& type) {
  add(
      table, "add.rn." + type, +[](T x, T y) { return with_device_nan(x + y); });
  add(
      table, "sub.rn." + type, +[](T x, T y) { return with_device_nan(x - y); });
  add(
      table, "mul.rn." + type, +[](T x, T y) { return with_device_nan(x * y); });
  add(
      table, "div.rn." + type, +[](T x, T y) { return with_device_nan(x / y); });
  add(
      table, "rcp.rn." + type, +[](T x) { return with_device_nan(T{1} / x); });
  add(
      table, "sqrt.rn." + type, +[](T x) { return with_device_nan(std::sqrt(x)); });
  add(
      table, "fma.rn." + type, +[](T x, T y, T z) { return with_device_nan(std::fma(x, y, z)); });
  add(
      table, "max." + type, +[](T x, T y) { return larger(x, y); });
  add(
      table, "min." + type, +[](T x, T y) { return smaller(x, y); });
  add(
      table, "abs." + type, +[](T x) { return std::fabs(x); });
  add(
      table, "neg." + type, +[](T x) { return -x; });
  add(
      table, "copysign." + type, +[](T sign, T x) { return std::copysign(x, sign); });
}

// Compares numbers: false if one is NaN; with suffix u, true.
template <class T>
void add_float_comparisons(Operations& table, const std::string& type) {
  const auto one = [&](const std::string& name, bool (*ordered)(T, T), bool (*unordered)(T, T)) {
    add(table, "setp." + name + "." + type, ordered);
    add(table, "setp." + name + "u." + type, unordered);
  };
  one(
      "eq", +[](T x, T y) { return x == y; }, +[](T x, T y) { return !(x < y || x > y); });
  one(
      "ne", +[](T x, T y) { return x < y || x > y; }, +[](T x, T y) { return x != y; });
  one(
      "lt", +[](T x, T y) { return x < y; }, +[](T x, T y) { return !(x >= y); });
  one(
      "le", +[](T x, T y) { return x <= y; }, +[](T x, T y) { return !(x > y); });
  one(
      "gt", +[](T x, T y) { return x > y; }, +[](T x, T y) { return !(x <= y); });
  one(
      "ge", +[](T x, T y) { return x >= y; }, +[](T x, T y) { return !(x < y); });
  add(
      table, "setp.num." + type, +[](T x, T y) { return x == x && y == y; });
  add(
      table, "setp.nan." + type, +[](T x, T y) { return x != x || y != y; });
  add(
      table, "selp." + type, +[](T x, T y, bool first) { return first ? x : y; });
}

float without_denormal(float x) { return cuda::without_denormal(x); }

}  // namespace

void add_float_operations(Operations& table) {
  add_float_arithmetic<float>(table, "f32");
  add_float_arithmetic<double>(table, "f64");
  add_float_comparisons<float>(table, "f32");
  add_float_comparisons<double>(table, "f64");
  add(
      table, "max.NaN.f32", +[](float x, float y) { return x != x || y != y ? with_device_nan(x + y) : larger(x, y); });
  add(
      table, "min.NaN.f32",
      +[](float x, float y) { return x != x || y != y ? with_device_nan(x + y) : smaller(x, y); });
  add(
      table, "ex2.approx.ftz.f32",
      +[](float x) { return with_device_nan(cuda::approximated(std::exp2(without_denormal(x)), 2)); });
  add(
      table, "rcp.approx.ftz.f32",
      +[](float x) { return with_device_nan(cuda::approximated(1.0f / without_denormal(x), 1)); });
}

}  // namespace weft::ptx
