#pragma once

// kLanes floats in a register, for objects built with AVX-512 F, BW, DQ and VL. See float_vector_avx2.h.

#include <cstdint>

#include <immintrin.h>

#include "kernels/cpu/lib/element.h"

namespace weft::cpu {
namespace {

constexpr int kLanes = 16;
// Rows and vectors of the attention tile: 6 x 4 accumulators of the 32 registers.
constexpr int kWideTileVectors = 4;
using Floats = __m512;
using Integers = std::int32_t __attribute__((vector_size(64)));

// The masked forms, because g++ 12 warns of an uninitialised operand inside the others.
constexpr __mmask16 kEvery = 0xffff;

inline Floats fill(float value) { return _mm512_set1_ps(value); }
inline Floats square_root(Floats x) { return _mm512_maskz_sqrt_ps(kEvery, x); }
inline Floats round_even(Floats x) {
  return _mm512_maskz_roundscale_ps(kEvery, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Floats truncated(Floats x) {
  return _mm512_maskz_roundscale_ps(kEvery, x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
inline Floats larger(Floats a, Floats b) { return _mm512_maskz_max_ps(kEvery, a, b); }
inline Floats smaller(Floats a, Floats b) { return _mm512_maskz_min_ps(kEvery, a, b); }
constexpr bool kFusesMultiplyAdd = true;
inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

inline __mmask16 leading_lanes(int count) { return static_cast<__mmask16>((1u << count) - 1); }

inline Floats load(const float* from) { return _mm512_loadu_ps(from); }
inline Floats load(const Half* from) {
  return _mm512_maskz_cvtph_ps(kEvery, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline Floats load(const Brain* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kEvery, _mm512_maskz_cvtepu16_epi32(kEvery, bits), 16));
}
inline void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
inline void store(Half* to, Floats x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_cvtps_ph(kEvery, x, _MM_FROUND_TO_NEAREST_INT));
}
inline void store_low_halves(std::uint16_t* to, Integers x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_maskz_cvtepi32_epi16(kEvery, reinterpret_cast<__m512i>(x)));
}
inline void store_bytes(std::int8_t* to, Integers x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_cvtepi32_epi8(kEvery, reinterpret_cast<__m512i>(x)));
}
inline void store_nearest_bytes(std::int8_t* to, const Floats* x) {
  for (int i = 0; i < 2; ++i) {
    const __m128i bytes = _mm512_maskz_cvtsepi32_epi8(kEvery, _mm512_maskz_cvtps_epi32(kEvery, x[i]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, bytes);
  }
}

inline Floats load_first(const float* from, int count) { return _mm512_maskz_loadu_ps(leading_lanes(count), from); }
inline void store_first(float* to, Floats x, int count) { _mm512_mask_storeu_ps(to, leading_lanes(count), x); }

inline Floats rounded_to_half(Floats x) {
  return _mm512_maskz_cvtph_ps(kEvery, _mm512_maskz_cvtps_ph(kEvery, x, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace
}  // namespace weft::cpu
