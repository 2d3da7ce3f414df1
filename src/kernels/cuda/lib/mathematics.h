#pragma once

// The two forms of kernels that compute an exponential or reduce a row. Built with reference math
// (tensor/reference_math.h) a kernel has the bits of every other device. With the device's own functions and order of
// sums it takes about a third of the instructions, and a code may differ by one step, a value by its last places
// (apps/device_check/difference.h has the bounds). Each form has a provider of its own for the same ops;
// builtin/default_priorities.h decides which is first. A kernel with a single form belongs to provider cuda.

#include <array>
#include <cstdint>

namespace weft::cuda {

enum class Mathematics : std::uint8_t { device, reference };

inline constexpr std::array kMathematics = {Mathematics::device, Mathematics::reference};

constexpr const char* provider_of(Mathematics mathematics) {
  return mathematics == Mathematics::reference ? "cuda_reference" : "cuda";
}
// The suffix of kernels' names.
constexpr const char* ending_of(Mathematics mathematics) {
  return mathematics == Mathematics::reference ? "reference" : "device";
}

}  // namespace weft::cuda
