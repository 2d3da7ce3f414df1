#pragma once

// IEEE half precision (f16): 1 sign, 5 exponent, 10 mantissa bits. Rounds to nearest even. Denormals, infinities and
// NaN are kept; a NaN becomes quiet.

#include <cstdint>

#include "tensor/float_rounding.h"

namespace weft {

static inline float f16_to_f32(std::uint16_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000u) << 16;
  const std::uint32_t magnitude = code & 0x7fffu;
  if (magnitude > 0x7c00u) return float_of_bits(sign | 0x7fc00000u | (magnitude & 0x3ffu) << 13);
  if (magnitude == 0x7c00u) return float_of_bits(sign | kFloatInfinity);
  return float_of_bits(sign | bits_of_float(widen_magnitude(magnitude, 10, 15)));
}

static inline std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = bits_of_float(value);
  const std::uint32_t sign = (bits & kFloatSign) >> 16;
  const std::uint32_t magnitude = bits & kFloatMagnitude;
  if (magnitude > kFloatInfinity) return static_cast<std::uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude == kFloatInfinity) return static_cast<std::uint16_t>(sign | 0x7c00u);
  const std::uint32_t rounded = round_magnitude(magnitude, 10, 15);
  return static_cast<std::uint16_t>(sign | (rounded < 0x7c00u ? rounded : 0x7c00u));
}

}  // namespace weft
