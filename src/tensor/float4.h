#pragma once

// f4e2m1, the four-bit float of the OCP Microscaling specification: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. A
// byte has two elements, the low nibble first. Conversion rounds to nearest even and saturates at 6; NaN gives 6.

#include <cstdint>

#include "tensor/float_rounding.h"

namespace weft {

// `code` is in [0, 16).
static inline float f4e2m1_to_f32(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8u) << 28;
  return float_of_bits(sign | bits_of_float(widen_magnitude(code & 0x7u, 1, 1)));
}

// Let p be the power of two below the magnitude, or 1 if the magnitude is below 1. Adding 1.5 * 2^22 * p leaves the
// magnitude as a multiple of the code's last place in the low bits. The further p that kPlaces adds is 2 such places.
// Together with twice the biased exponent (power >> 22) the low bits are then 256 plus the code.
static inline std::uint8_t f32_to_f4e2m1(float value) {
  constexpr std::uint32_t kOne = 0x3f800000u, kSix = 0x40c00000u;
  constexpr float kPlaces = 0x1.8p+22f + 1.0f;
  const std::uint32_t bits = bits_of_float(value), magnitude = bits & kFloatMagnitude;
  const std::uint32_t held = magnitude < kSix ? magnitude : kSix;
  const std::uint32_t exponent = held & kFloatInfinity, power = exponent > kOne ? exponent : kOne;
  const float sum = float_of_bits(power) * kPlaces + float_of_bits(held);
  const std::uint32_t code = (bits_of_float(sum) + (power >> 22)) & 0x7u;
  const std::uint32_t sign = magnitude > kFloatInfinity ? 0u : bits >> 28 & 0x8u;
  return static_cast<std::uint8_t>(sign | code);
}

// Element `index` of packed nibbles.
static inline std::uint8_t load_nibble(const std::uint8_t* packed, std::int64_t index) {
  const std::uint8_t byte = packed[index / 2];
  return static_cast<std::uint8_t>(index % 2 == 0 ? byte & 0xfu : byte >> 4);
}

static inline void store_nibble(std::uint8_t* packed, std::int64_t index, std::uint8_t code) {
  std::uint8_t& byte = packed[index / 2];
  byte = static_cast<std::uint8_t>(index % 2 == 0 ? (byte & 0xf0u) | code : (byte & 0xfu) | code << 4);
}

}  // namespace weft
