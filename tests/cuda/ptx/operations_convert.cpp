// Conversions between whole numbers and f32, f64 and the codes of f8e4m3; addresses between spaces.

#include <cmath>
#include <limits>

#include "tensor/float8.h"
#include "tests/cuda/ptx/operations.h"

namespace weft::ptx {
namespace {

template <class To, class From>
void add_whole(Operations& table, const std::string& to, const std::string& from) {
  add(
      table, "cvt." + to + "." + from, +[](From x) { return static_cast<To>(x); });
}

// From shorter types, which registers of any width may contain, and from all others.
template <class To>
void add_whole_of(Operations& table, const std::string& to) {
  add_whole<To, std::uint8_t>(table, to, "u8");
  add_whole<To, std::int8_t>(table, to, "s8");
  add_whole<To, std::uint16_t>(table, to, "u16");
  add_whole<To, std::int16_t>(table, to, "s16");
  add_whole<To, std::uint32_t>(table, to, "u32");
  add_whole<To, std::int32_t>(table, to, "s32");
  add_whole<To, std::uint64_t>(table, to, "u64");
  add_whole<To, std::int64_t>(table, to, "s64");
  add(
      table, "cvt.rn.f32." + to, +[](To x) { return static_cast<float>(x); });
  add(
      table, "cvt.rn.f64." + to, +[](To x) { return static_cast<double>(x); });
}

// Clamped to the range of T; NaN gives 0, for 64 bits only the first bit.
template <class T>
T held(float x) {
  if (x != x) return sizeof(T) == 8 ? static_cast<T>(std::uint64_t{1} << 63) : T{0};
  const double wide = static_cast<double>(x);
  if (wide <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (wide >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}
template <class T>
void add_rounded(Operations& table, const std::string& type) {
  add(
      table, "cvt.rzi." + type + ".f32", +[](float x) { return held<T>(std::trunc(x)); });
  add(
      table, "cvt.rni." + type + ".f32", +[](float x) { return held<T>(std::nearbyint(x)); });
  add(
      table, "cvt.rmi." + type + ".f32", +[](float x) { return held<T>(std::floor(x)); });
  add(
      table, "cvt.rpi." + type + ".f32", +[](float x) { return held<T>(std::ceil(x)); });
}

std::uint16_t fp8_code(float x) {
  if (x != x) return 0x7f;
  const float limit = 448.0f;
  return f32_to_f8e4m3(x > limit ? limit : x < -limit ? -limit : x);
}

void add_spaces(Operations& table, const std::string& name, std::uint64_t (*to)(std::uint64_t),
                std::uint64_t (*from)(std::uint64_t)) {
  add(table, "cvta." + name + ".u64", to);
  add(table, "cvta.to." + name + ".u64", from);
}

}  // namespace

void add_conversions(Operations& table) {
  add_whole_of<std::uint16_t>(table, "u16");
  add_whole_of<std::int16_t>(table, "s16");
  add_whole_of<std::uint32_t>(table, "u32");
  add_whole_of<std::int32_t>(table, "s32");
  add_whole_of<std::uint64_t>(table, "u64");
  add_whole_of<std::int64_t>(table, "s64");
  add_rounded<std::uint32_t>(table, "u32");
  add_rounded<std::int32_t>(table, "s32");
  add_rounded<std::uint64_t>(table, "u64");
  add_rounded<std::int64_t>(table, "s64");
  add(
      table, "cvt.rzi.f32.f32", +[](float x) { return std::trunc(x); });
  add(
      table, "cvt.rni.f32.f32", +[](float x) { return std::nearbyint(x); });
  add(
      table, "cvt.rmi.f32.f32", +[](float x) { return std::floor(x); });
  add(
      table, "cvt.rpi.f32.f32", +[](float x) { return std::ceil(x); });
  add(
      table, "cvt.f64.f32", +[](float x) { return static_cast<double>(x); });
  add(
      table, "cvt.rn.f32.f64", +[](double x) { return static_cast<float>(x); });
  // The first operand becomes the upper byte.
  add(
      table, "cvt.rn.satfinite.e4m3x2.f32",
      +[](float high, float low) { return static_cast<std::uint16_t>(fp8_code(low) | fp8_code(high) << 8); });

  using Address = std::uint64_t;
  add_spaces(
      table, "global", +[](Address a) { return a; }, +[](Address a) { return a; });
  add_spaces(
      table, "shared", +[](Address a) { return a + kSharedWindow; }, +[](Address a) { return a - kSharedWindow; });
  add_spaces(
      table, "local", +[](Address a) { return a + kLocalWindow; }, +[](Address a) { return a - kLocalWindow; });
  add_spaces(
      table, "param", +[](Address a) { return a + kParameterWindow; }, +[](Address a) { return a - kParameterWindow; });
}

}  // namespace weft::ptx
