#pragma once

// bfloat16 (bf16), the upper half of an f32. Rounds to nearest even. Denormals, infinities and NaN are kept; a NaN
// becomes quiet.

#include <cstdint>

#include "tensor/float_bits.h"

namespace weft {

static inline float bf16_to_f32(std::uint16_t code) { return float_of_bits(static_cast<std::uint32_t>(code) << 16); }

static inline std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = bits_of_float(value);
  if ((bits & kFloatMagnitude) > kFloatInfinity) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace weft
