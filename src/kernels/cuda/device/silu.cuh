#pragma once

// x / (1 + exp(-x)), by the device's approximations or by reference math.

#include "kernels/cuda/device/arithmetic.cuh"
#include "kernels/cuda/device/elements.cuh"

#if defined(WEFT_REFERENCE_KERNELS)
#include "kernels/cuda/device/reference_functions.cuh"
#endif

namespace weft::cuda {

constexpr float kLogTwoOfE = 1.4426950408889634f, kLogTwoOfERest = 1.92596303e-8f;

struct DeviceMathematics {
  // If `precise`, the error is at most 8 units in the last place for |x| < 80. Else it is at most 2^-17 of the result,
  // which neither codes nor 16 bits show: the argument of 2^y is rounded, and the rounding error is dropped.
  template <bool precise>
  static WEFT_DEVICE float silu(float x) {
    const float argument = x * -kLogTwoOfE;
    float power = about_power_of_two(argument);
    if constexpr (precise) {
      // kLogTwoOfE + kLogTwoOfERest is log2(e) to 48 bits. `rest` is NaN if x is infinite; the power is then exact.
      const float rest = multiply_add(x, -kLogTwoOfERest, multiply_add(x, -kLogTwoOfE, -argument));
      if (rest == rest) power *= multiply_add(rest, 0.69314718f, 1.0f);  // 2^rest
    }
    return x * about_reciprocal(1.0f + power);
  }
  template <class T>
  static WEFT_DEVICE std::uint32_t multiply_pairs(std::uint32_t x, std::uint32_t y) {
    return cuda::multiply_pairs(x, y, T{});
  }
};

#if defined(WEFT_REFERENCE_KERNELS)
// This has the bits of every other device.
struct ReferenceMath {
  template <bool precise>
  static WEFT_DEVICE float silu(float x) {
    return reference_silu(x);
  }
  // The product is rounded to f32 first, as in the definition. This matters for denormal products of bf16.
  template <class T>
  static WEFT_DEVICE std::uint32_t multiply_pairs(std::uint32_t x, std::uint32_t y) {
    float a[2], b[2];
    unpack(x, a[0], a[1], T{});
    unpack(y, b[0], b[1], T{});
    return pack(a[0] * b[0], a[1] * b[1], T{});
  }
};
#endif

// silu(gate) * up of the elements of 16 bytes each. With `rounds` it is rounded to T twice, as two separate ops would
// store it, and f32 uses the precise silu. Otherwise nothing is rounded.
template <class T, bool rounds, class Mathematics>
WEFT_DEVICE void gated_values(const FourWords& gate, const FourWords& up, float* values) {
  if constexpr (rounds && sizeof(T) == 2) {
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) {
      float first, second;
      unpack(gate.word[i], first, second, T{});
      const std::uint32_t active =
          pack(Mathematics::template silu<false>(first), Mathematics::template silu<false>(second), T{});
      unpack(Mathematics::template multiply_pairs<T>(active, up.word[i]), values[2 * i], values[2 * i + 1], T{});
    }
  } else {
    float factors[kElementsOfLoad<T>];
    unpack<T>(gate, values);
    unpack<T>(up, factors);
    WEFT_UNROLL
    for (int i = 0; i < kElementsOfLoad<T>; ++i) values[i] = Mathematics::template silu<rounds>(values[i]) * factors[i];
  }
}

}  // namespace weft::cuda
