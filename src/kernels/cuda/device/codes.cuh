#pragma once

// The codes of quantized values: the scale for a range, and the conversion of scaled values to codes.

#include "kernels/cuda/device/arithmetic.cuh"

#if !defined(__CUDACC__)
#include "tensor/float8.h"
#endif

namespace weft::cuda {

// f8e4m3: rounds to nearest even and clamps to [-448, 448]; NaN stays NaN.
struct Fp8 {
  static constexpr float kLimit = 448.0f;
  static constexpr float kInverseLimit = 1.0f / 448.0f;
  // Scaled values below this are converted without a further check.
  static constexpr float kSafe = 1024.0f;

  // For a row with one scale: a NaN makes the scale NaN.
  static WEFT_DEVICE float larger_magnitude(float largest, float x) { return larger(largest, magnitude(x)); }

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 890
  // Four codes, the first in the lowest byte.
  static WEFT_DEVICE std::uint32_t pack(const float* x, bool) {
    std::uint32_t word;
    asm("{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; "
        "mov.b32 %0, {low, high}; }"
        : "=r"(word)
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]));
    return word;
  }
#else
  // Let p be the power of two below the magnitude, at least 2^-6. Adding 2^20 * p leaves the magnitude as a multiple of
  // the code's last place in the low bits. The low bits of the addend, power >> 20, add the code of p, plus 968.
  static WEFT_DEVICE std::uint32_t code(float x) {
    const std::uint32_t bits = bits_of(x);
    const float held = magnitude(x) > kLimit ? kLimit : magnitude(x);
    std::uint32_t power = bits_of(held) & 0x7f800000u;
    power = power > 0x3c800000u ? power : 0x3c800000u;
    const float sum = held + float_of(power + ((power >> 20) + (20u << 23)));
    const std::uint32_t found = x != x ? 0x7fu : (bits_of(sum) & 0x7ffu) - 968u;
    return found | (bits >> 24 & 0x80u);
  }
  static WEFT_DEVICE std::uint32_t pack(const float* x, bool) {
    return code(x[0]) | code(x[1]) << 8 | code(x[2]) << 16 | code(x[3]) << 24;
  }
#endif
};

// The lowest bytes of four words, the first in the lowest.
WEFT_DEVICE std::uint32_t low_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
#if defined(__CUDACC__)
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
#else
  return (a & 0xffu) | (b & 0xffu) << 8 | (c & 0xffu) << 16 | d << 24;
#endif
}

// int8: rounds to nearest even or towards zero and clamps to [-128, 127]; NaN gives 0.
template <bool truncates>
struct Int8Codes {
  static constexpr float kLimit = 127.0f;
  static constexpr float kInverseLimit = 1.0f / 127.0f;
  static constexpr float kSafe = 127.25f;

  // Of a row that has one scale: a NaN counts as 0.
  static WEFT_DEVICE float larger_magnitude(float largest, float x) { return larger_number(largest, magnitude(x)); }

  static WEFT_DEVICE float held(float x) {
    const float number = x != x ? 0.0f : x;
    return number < -128.0f ? -128.0f : number > 127.0f ? 127.0f : number;
  }
  // The code is the lowest byte of the result. Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
  static WEFT_DEVICE std::uint32_t code(float x, bool is_safe) {
    const float number = is_safe ? x : held(x);
    if constexpr (truncates) return static_cast<std::uint32_t>(static_cast<int>(number));
    return bits_of(number + 12582912.0f);
  }
  // Four codes, the first in the lowest byte. `is_safe` means that none is a NaN or beyond kSafe.
  static WEFT_DEVICE std::uint32_t pack(const float* x, bool is_safe) {
    return low_bytes(code(x[0], is_safe), code(x[1], is_safe), code(x[2], is_safe), code(x[3], is_safe));
  }
};

using Int8 = Int8Codes<false>;
using TruncatedInt8 = Int8Codes<true>;

// The number of a non-negative code of f8e4m3.
WEFT_DEVICE float number_of_fp8(std::uint32_t code) {
  if (code == 0x7fu) return float_of(0x7fffffffu);
  // A normal code becomes the bits of its number. A denormal code becomes a mantissa with the least exponent, whose
  // power is then subtracted.
  if (code >= 8u) return float_of((code << 20) + (120u << 23));
  return float_of((code << 20) + (121u << 23)) - 0x1p-6f;
}

// The code of f4e2m1: rounds to nearest even and clamps to [-6, 6]; NaN gives 6. Let p be the power of two below the
// magnitude, at least 1. Adding 2^22 * p leaves the magnitude as a multiple of the code's last place in the low bits,
// where the addend's low bits make the code plus 254.
WEFT_DEVICE std::uint32_t fp4_code(float x) {
  if (x != x) return 7u;
  const float held = magnitude(x) > 6.0f ? 6.0f : magnitude(x);
  std::uint32_t power = bits_of(held) & 0x7f800000u;
  power = power > 0x3f800000u ? power : 0x3f800000u;
  const float sum = held + float_of(power + ((power >> 22) + (22u << 23)));
  return ((bits_of(sum) & 0x1ffu) - 254u) | (bits_of(x) >> 28 & 8u);
}

}  // namespace weft::cuda
