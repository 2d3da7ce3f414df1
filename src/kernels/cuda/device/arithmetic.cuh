#pragma once

// Arithmetic on f32 with the same result on both sides: each function is one IEEE operation or a fixed sequence of
// them, unless its name has `about`. It is built without contraction: fused operations are written explicitly.

#include "kernels/cuda/device/platform.cuh"

#if !defined(__CUDACC__)
#include <cmath>

#include "emulator/approximation.h"
#endif

namespace weft::cuda {

WEFT_DEVICE std::uint32_t bits_of(float x) {
#if defined(__CUDACC__)
  return __float_as_uint(x);
#else
  return std::bit_cast<std::uint32_t>(x);
#endif
}
WEFT_DEVICE float float_of(std::uint32_t bits) {
#if defined(__CUDACC__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

// x * y + z, rounded once.
WEFT_DEVICE float multiply_add(float x, float y, float z) {
#if defined(__CUDACC__)
  return __fmaf_rn(x, y, z);
#else
  return __builtin_fmaf(x, y, z);
#endif
}
WEFT_DEVICE float divide(float x, float y) {
#if defined(__CUDACC__)
  return __fdiv_rn(x, y);
#else
  return x / y;
#endif
}
// 1 / x for x from 2^-100 to 2^100: the steps of CUDA's __frcp_rn without its range check.
WEFT_DEVICE float ordinary_reciprocal(float x) {
#if defined(__CUDACC__)
  float about;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(about) : "f"(x));
  return __fmaf_rn(about, -__fmaf_rn(x, about, -1.0f), about);
#else
  return 1.0f / x;
#endif
}
WEFT_DEVICE float square_root(float x) {
#if defined(__CUDACC__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// NaN if either is NaN. Devices before sm_80 do not have the instruction; no build is for them.
WEFT_DEVICE float larger(float x, float y) {
#if defined(__CUDACC__)
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
  return result;
#else
  if (x != x || y != y) return float_of(0x7fffffffu);
  return x < y ? y : x;
#endif
}
WEFT_DEVICE float smaller(float x, float y) {
#if defined(__CUDACC__)
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
  return result;
#else
  if (x != x || y != y) return float_of(0x7fffffffu);
  return y < x ? y : x;
#endif
}
// The other one if one is NaN.
WEFT_DEVICE float larger_number(float x, float y) {
#if defined(__CUDACC__)
  return fmaxf(x, y);
#else
  return !(x >= y) && y == y ? y : x;
#endif
}
WEFT_DEVICE float magnitude(float x) {
#if defined(__CUDACC__)
  return fabsf(x);
#else
  return __builtin_fabsf(x);
#endif
}

// 2^x within 2 units in the last place; results and arguments below the smallest normal number are 0.
WEFT_DEVICE float about_power_of_two(float x) {
#if defined(__CUDACC__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return approximated(std::exp2(without_denormal(x)), 2);
#endif
}
// 1 / x within 1 unit in the last place; denormals are 0 as above.
WEFT_DEVICE float about_reciprocal(float x) {
#if defined(__CUDACC__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return approximated(1.0f / without_denormal(x), 1);
#endif
}

// The smallest power of two >= x, for x >= 0. Infinity and NaN are returned unchanged.
WEFT_DEVICE float power_of_two_above(float x) {
  const std::uint32_t bits = bits_of(x);
  if (bits >= 0x00800000u) return bits >= 0x7f800000u ? x : float_of((bits + 0x7fffffu) & 0x7f800000u);
  std::uint32_t power = 1;  // for a denormal number
  while (power < bits) power += power;
  return bits == 0 ? x : float_of(power);
}

}  // namespace weft::cuda
