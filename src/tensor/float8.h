#pragma once

// The eight-bit floats, as the OCP 8-bit Floating Point and Microscaling specifications and PyTorch define them. All
// round to nearest even.
//
//   f8e4m3      bias 7, no infinity, NaN 0x7f and 0xff; saturates at 448, infinity included
//   f8e4m3fnuz  bias 8, no infinity, no -0, NaN 0x80; too large gives NaN
//   f8e5m2      bias 15, infinities and NaN as in IEEE
//   f8e8m0      2^(code - 127), no sign and no zero, NaN 0xff; the sign of the input is dropped

#include <cstdint>

#include "tensor/float_rounding.h"

namespace weft {

static constexpr float f8e4m3_to_f32(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80u) << 24;
  const std::uint32_t magnitude = code & 0x7fu;
  if (magnitude == 0x7fu) return float_of_bits(sign | 0x7fc00000u);
  return float_of_bits(sign | bits_of_float(widen_magnitude(magnitude, 3, 7)));
}

static inline std::uint8_t f32_to_f8e4m3(float value) {
  const std::uint32_t bits = bits_of_float(value);
  const std::uint32_t sign = (bits & kFloatSign) >> 24;
  const std::uint32_t magnitude = bits & kFloatMagnitude;
  if (magnitude > kFloatInfinity) return static_cast<std::uint8_t>(sign | 0x7fu);
  const std::uint32_t rounded = round_magnitude(magnitude, 3, 7);
  return static_cast<std::uint8_t>(sign | (rounded < 0x7eu ? rounded : 0x7eu));
}

static inline float f8e4m3fnuz_to_f32(std::uint8_t code) {
  if (code == 0x80u) return float_of_bits(0x7fc00000u);
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80u) << 24;
  return float_of_bits(sign | bits_of_float(widen_magnitude(code & 0x7fu, 3, 8)));
}

static inline std::uint8_t f32_to_f8e4m3fnuz(float value) {
  const std::uint32_t bits = bits_of_float(value);
  const std::uint32_t magnitude = bits & kFloatMagnitude;
  if (magnitude >= kFloatInfinity) return 0x80u;
  const std::uint32_t rounded = round_magnitude(magnitude, 3, 8);
  if (rounded > 0x7fu) return 0x80u;
  if (rounded == 0) return 0;
  return static_cast<std::uint8_t>((bits & kFloatSign) >> 24 | rounded);
}

static inline float f8e5m2_to_f32(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80u) << 24;
  const std::uint32_t magnitude = code & 0x7fu;
  if (magnitude > 0x7cu) return float_of_bits(sign | 0x7fc00000u);
  if (magnitude == 0x7cu) return float_of_bits(sign | kFloatInfinity);
  return float_of_bits(sign | bits_of_float(widen_magnitude(magnitude, 2, 15)));
}

static inline std::uint8_t f32_to_f8e5m2(float value) {
  const std::uint32_t bits = bits_of_float(value);
  const std::uint32_t sign = (bits & kFloatSign) >> 24;
  const std::uint32_t magnitude = bits & kFloatMagnitude;
  if (magnitude > kFloatInfinity) return static_cast<std::uint8_t>(sign | 0x7fu);
  if (magnitude == kFloatInfinity) return static_cast<std::uint8_t>(sign | 0x7cu);
  const std::uint32_t rounded = round_magnitude(magnitude, 2, 15);
  return static_cast<std::uint8_t>(sign | (rounded < 0x7cu ? rounded : 0x7cu));
}

static inline float f8e8m0_to_f32(std::uint8_t code) {
  if (code == 0xffu) return float_of_bits(0x7fc00000u);
  if (code == 0) return float_of_bits(0x00400000u);  // 2^-127 is a denormal f32
  return float_of_bits(static_cast<std::uint32_t>(code) << 23);
}

// Rounds as PyTorch does: to the nearer power of two, and a tie (1.5 times a power) up. Between the two smallest
// powers, where f32 is subnormal, everything above 2^-127 is rounded up to 2^-126.
static inline std::uint8_t f32_to_f8e8m0(float value) {
  const std::uint32_t magnitude = bits_of_float(value) & kFloatMagnitude;
  const std::uint32_t exponent = magnitude >> 23;
  if (exponent == 0xffu) return 0xffu;
  const std::uint32_t mantissa = magnitude & 0x7fffffu;
  const bool up = mantissa > 0x400000u || (mantissa == 0x400000u && exponent > 0);
  return static_cast<std::uint8_t>(exponent + (up ? 1u : 0u));
}

}  // namespace weft
