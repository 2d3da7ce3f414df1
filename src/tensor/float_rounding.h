#pragma once

// Rounds f32 to a smaller binary format and widens it back, for every format whose codes are sign, exponent and
// mantissa.

#include <cstdint>

#include "tensor/float_bits.h"

namespace weft {

// Returns the code, without sign, of the value nearest to a finite f32, with ties to even, as if the format had no
// largest value. `magnitude` is the f32 pattern without sign. Denormals are read and produced.
static inline std::uint32_t round_magnitude(std::uint32_t magnitude, int mantissa_bits, int bias) {
  std::uint32_t exponent = magnitude >> 23;
  std::uint32_t mantissa = magnitude & 0x7fffffu;
  if (exponent == 0) {
    exponent = 1;
  } else {
    mantissa |= 0x800000u;
  }
  const int target_exponent = static_cast<int>(exponent) - 127 + bias;
  int shift = 23 - mantissa_bits;
  if (target_exponent >= 1) {
    mantissa += static_cast<std::uint32_t>(target_exponent - 1) << 23;
  } else {
    shift += 1 - target_exponent;
  }
  if (shift == 0) return mantissa;
  if (shift > 24) return 0;  // below half of the smallest denormal
  const std::uint32_t kept = mantissa >> shift;
  const std::uint32_t dropped = mantissa & ((1u << shift) - 1u);
  const std::uint32_t half = 1u << (shift - 1);
  return kept + ((dropped > half || (dropped == half && (kept & 1u) != 0)) ? 1u : 0u);
}

// The f32 value of a finite code, without sign.
static constexpr float widen_magnitude(std::uint32_t code, int mantissa_bits, int bias) {
  const std::uint32_t exponent = code >> mantissa_bits;
  const std::uint32_t mantissa = code & ((1u << mantissa_bits) - 1u);
  if (exponent == 0) {
    const float smallest = float_of_bits(static_cast<std::uint32_t>(127 + 1 - bias - mantissa_bits) << 23);
    return static_cast<float>(mantissa) * smallest;
  }
  return float_of_bits((static_cast<std::uint32_t>(static_cast<int>(exponent) - bias + 127) << 23) |
                       (mantissa << (23 - mantissa_bits)));
}

// Rounds to odd: returns `value` truncated to f32, with the last bit set if any bits were dropped. Rounding the result
// once more to at most 22 bits gives the same as rounding `value` itself.
static inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (value != value || static_cast<double>(nearest) == value) return nearest;
  std::uint32_t bits = bits_of_float(nearest);
  const double magnitude = value < 0 ? -value : value;
  const float nearest_magnitude = float_of_bits(bits & kFloatMagnitude);
  if (static_cast<double>(nearest_magnitude) > magnitude) --bits;
  return float_of_bits(bits | 1u);
}

}  // namespace weft
