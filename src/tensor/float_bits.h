#pragma once

// Bit patterns of f32. Kernels that are built for one instruction set include this file, so it has no templates of the
// standard library and no symbols of its own.

#include <cstdint>

namespace weft {

static constexpr std::uint32_t bits_of_float(float value) { return __builtin_bit_cast(std::uint32_t, value); }
static constexpr float float_of_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

inline constexpr std::uint32_t kFloatSign = 0x80000000u;
inline constexpr std::uint32_t kFloatMagnitude = 0x7fffffffu;
inline constexpr std::uint32_t kFloatInfinity = 0x7f800000u;

}  // namespace weft
