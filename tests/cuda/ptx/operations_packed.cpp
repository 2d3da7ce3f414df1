// f16 and bf16, alone and in pairs. Each result is the exact one rounded once.

#include <cmath>

#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#include "tests/cuda/ptx/operations.h"

namespace weft::ptx {
namespace {

struct Half {
  static float value(std::uint32_t code) { return f16_to_f32(static_cast<std::uint16_t>(code)); }
  static std::uint16_t code(float x) { return x != x ? 0x7fff : f32_to_f16(x); }
};
struct Brain {
  static float value(std::uint32_t code) { return bf16_to_f32(static_cast<std::uint16_t>(code)); }
  static std::uint16_t code(float x) { return x != x ? 0x7fff : f32_to_bf16(x); }
};

// x + y rounded to odd: the nearest double, or its neighbour on the other side of the exact sum if that is odd.
double sum_to_odd(double x, double y) {
  const double sum = x + y, of_y = sum - x;
  const double lost = (x - (sum - of_y)) + (y - of_y);
  if (lost == 0 || lost != lost || (std::bit_cast<std::uint64_t>(sum) & 1) != 0) return sum;
  return std::nextafter(sum, lost > 0 ? HUGE_VAL : -HUGE_VAL);
}

// The product of two codes is exact in f64: 22 bits.
template <class T>
std::uint16_t multiply_add(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  const double product = static_cast<double>(T::value(x)) * static_cast<double>(T::value(y));
  return T::code(round_to_odd(sum_to_odd(product, static_cast<double>(T::value(z)))));
}
template <class T>
std::uint16_t multiply(std::uint32_t x, std::uint32_t y) {
  return T::code(round_to_odd(static_cast<double>(T::value(x)) * static_cast<double>(T::value(y))));
}
template <class T>
std::uint16_t sum(std::uint32_t x, std::uint32_t y) {
  return T::code(round_to_odd(sum_to_odd(static_cast<double>(T::value(x)), static_cast<double>(T::value(y)))));
}

std::uint32_t joined(std::uint32_t low, std::uint32_t high) { return low | high << 16; }

template <class T>
void add_packed_type(Operations& table, const std::string& type) {
  using One = std::uint16_t;
  using Two = std::uint32_t;
  add(
      table, "add.rn." + type, +[](One x, One y) { return sum<T>(x, y); });
  add(
      table, "mul.rn." + type, +[](One x, One y) { return multiply<T>(x, y); });
  add(
      table, "fma.rn." + type, +[](One x, One y, One z) { return multiply_add<T>(x, y, z); });
  add(
      table, "add.rn." + type + "x2",
      +[](Two x, Two y) { return joined(sum<T>(x & 0xffff, y & 0xffff), sum<T>(x >> 16, y >> 16)); });
  add(
      table, "mul.rn." + type + "x2",
      +[](Two x, Two y) { return joined(multiply<T>(x & 0xffff, y & 0xffff), multiply<T>(x >> 16, y >> 16)); });
  add(
      table, "fma.rn." + type + "x2", +[](Two x, Two y, Two z) {
        return joined(multiply_add<T>(x & 0xffff, y & 0xffff, z & 0xffff), multiply_add<T>(x >> 16, y >> 16, z >> 16));
      });
  // The first operand becomes the upper half.
  add(
      table, "cvt.rn." + type + "x2.f32",
      +[](float high, float low) -> Two { return joined(T::code(low), T::code(high)); });
  add(
      table, "cvt.rn." + type + ".f32", +[](float x) { return T::code(x); });
  add(
      table, "cvt.f32." + type, +[](One x) { return T::value(x); });
}

}  // namespace

void add_packed_operations(Operations& table) {
  add_packed_type<Half>(table, "f16");
  add_packed_type<Brain>(table, "bf16");
}

}  // namespace weft::ptx
