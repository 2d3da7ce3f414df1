#pragma once

// The GPU's approximate functions in the emulator: the exact value, moved within the documented bound. A kernel whose
// result depends on the actual error of the hardware fails a test under one of the settings.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::cuda {

enum class Approximation : std::uint8_t { exact, upwards, downwards, scattered };

// For launches of this host thread from now on; tests set it.
inline thread_local Approximation current_approximation = Approximation::exact;

// Replaces denormals by 0 of their sign.
inline float without_denormal(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

// `units` is the largest error in units in the last place.
inline float approximated(float exact, int units) {
  exact = without_denormal(exact);
  if (current_approximation == Approximation::exact || !std::isnormal(exact)) return exact;
  int moved = current_approximation == Approximation::upwards ? units : -units;
  if (current_approximation == Approximation::scattered) {
    const std::uint32_t mixed = std::bit_cast<std::uint32_t>(exact) * 0x9e3779b1u;
    moved = static_cast<int>((mixed >> 16) % static_cast<std::uint32_t>(2 * units + 1)) - units;
  }
  const float result = std::bit_cast<float>(std::bit_cast<std::int32_t>(exact) + moved);
  return std::isnormal(result) ? result : exact;
}

}  // namespace weft::cuda
