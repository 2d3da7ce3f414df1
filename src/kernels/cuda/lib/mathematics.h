#pragma once

// The two forms of kernels that take an exponential or reduce a row. Built with house mathematics (tensor/house_math.h)
// a kernel has the bits of every other device; with the device's own functions and order of sums it takes about a third
// of the instructions, and a code may differ by one step, a value by its last places (apps/device_check/difference.h
// says how far). Each form is offered by a provider of its own, under the same names of ops (two_forms.h); which comes
// first is decided by builtin/default_priorities.h. A kernel that has one form alone belongs to provider cuda.

#include <array>
#include <cstdint>

namespace weft::cuda {

enum class Mathematics : std::uint8_t { device, house };

inline constexpr std::array kMathematics = {Mathematics::device, Mathematics::house};

constexpr const char* provider_of(Mathematics mathematics) {
  return mathematics == Mathematics::house ? "cuda_house" : "cuda";
}
// Of kernels' names.
constexpr const char* ending_of(Mathematics mathematics) {
  return mathematics == Mathematics::house ? "house" : "device";
}

}  // namespace weft::cuda
