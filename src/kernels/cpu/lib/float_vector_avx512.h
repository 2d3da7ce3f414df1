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
constexpr __mmask32 kEveryWord = 0xffffffff;

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

inline Integers smaller_words(Integers a, Integers b) {
  return reinterpret_cast<Integers>(_mm512_min_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
inline Integers smaller_unsigned_words(Integers a, Integers b) {
  return reinterpret_cast<Integers>(_mm512_min_epu16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

inline Integers larger_unsigned_words(Integers a, Integers b) {
  return reinterpret_cast<Integers>(_mm512_max_epu16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}

inline __mmask16 leading_lanes(int count) { return static_cast<__mmask16>((1u << count) - 1); }

inline Floats load(const float* from) { return _mm512_loadu_ps(from); }
inline Floats load(const Half* from) {
  return _mm512_maskz_cvtph_ps(kEvery, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
inline Floats load(const Brain* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kEvery, _mm512_maskz_cvtepu16_epi32(kEvery, bits), 16));
}
inline Integers load_bytes(const std::uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<Integers>(_mm512_maskz_cvtepu8_epi32(kEvery, bytes));
}
inline Integers load_signed_bytes(const std::uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<Integers>(_mm512_maskz_cvtepi8_epi32(kEvery, bytes));
}
// kLanes / 4 pieces of 16 bytes, each at `offset` from its address. The interleaving is of the low or the high halves
// of each 128 bits.
using Bytes = std::uint8_t __attribute__((vector_size(64)));
inline Bytes load_pieces(const std::uint8_t* const* from, std::int64_t offset) {
  const auto piece = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[i] + offset)); };
  __m512i x = _mm512_castsi128_si512(piece(0));
  x = _mm512_maskz_inserti32x4(kEvery, x, piece(1), 1);
  x = _mm512_maskz_inserti32x4(kEvery, x, piece(2), 2);
  return reinterpret_cast<Bytes>(_mm512_maskz_inserti32x4(kEvery, x, piece(3), 3));
}
inline Bytes interleave_low(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm512_unpacklo_epi8(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
inline Bytes interleave_high(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm512_unpackhi_epi8(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
// 2 * kLanes signed bytes as words.
using HalfWords = std::int16_t __attribute__((vector_size(64)));
inline HalfWords load_signed_words(const std::uint8_t* from) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return reinterpret_cast<HalfWords>(_mm512_maskz_cvtepi8_epi16(kEveryWord, bytes));
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

inline void store_pairs(std::int8_t* to, __m512i even, __m512i odd) {
  const __m512i pairs =
      _mm512_or_si512(_mm512_and_si512(even, _mm512_set1_epi32(0xff)), _mm512_maskz_slli_epi32(kEvery, odd, 8));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_cvtepi32_epi16(kEvery, pairs));
}
inline void store_nearest_byte_pairs(std::int8_t* to, const Floats* x) {
  store_pairs(to, _mm512_maskz_cvtps_epi32(kEvery, x[0]), _mm512_maskz_cvtps_epi32(kEvery, x[1]));
}
inline __m512i signed_byte(Integers x, int bias, Floats sign) {
  const __m512i top = _mm512_maskz_srli_epi32(kEvery, _mm512_castps_si512(sign), 24);
  return _mm512_or_si512(reinterpret_cast<__m512i>(x - bias), _mm512_and_si512(top, _mm512_set1_epi32(0x80)));
}
inline void store_signed_bytes(std::int8_t* to, const Integers* x, int bias, const Floats* signs) {
  for (int i = 0; i < 2; ++i) {
    const __m128i bytes = _mm512_maskz_cvtepi32_epi8(kEvery, signed_byte(x[i], bias, signs[i]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, bytes);
  }
}
inline void store_signed_byte_pairs(std::int8_t* to, const Integers* x, int bias, const Floats* signs) {
  store_pairs(to, signed_byte(x[0], bias, signs[0]), signed_byte(x[1], bias, signs[1]));
}

inline Integers blended_words(Integers even, Integers odd) {
  return reinterpret_cast<Integers>(
      _mm512_mask_blend_epi16(0xaaaaaaaa, reinterpret_cast<__m512i>(even), reinterpret_cast<__m512i>(odd)));
}
inline __m256i low_bytes(const Integers* words) {
  return _mm512_maskz_cvtepi16_epi8(kEveryWord, reinterpret_cast<__m512i>(words[0]));
}
inline __m256i bytes_of_the_signs(const Integers* words) {
  return _mm512_maskz_cvtsepi16_epi8(kEveryWord, reinterpret_cast<__m512i>(words[0]));
}
inline void store_low_bytes_or_signs(std::int8_t* to, const Integers* words, const Integers* signs) {
  const __m256i sign = _mm256_and_si256(bytes_of_the_signs(signs), _mm256_set1_epi8(-128));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_or_si256(low_bytes(words), sign));
}
inline void store_low_bytes_negated(std::int8_t* to, const Integers* words, const Integers* signs) {
  const __m256i sign = _mm256_or_si256(bytes_of_the_signs(signs), _mm256_set1_epi8(1));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_sign_epi8(low_bytes(words), sign));
}

inline Floats load_first(const float* from, int count) { return _mm512_maskz_loadu_ps(leading_lanes(count), from); }
inline void store_first(float* to, Floats x, int count) { _mm512_mask_storeu_ps(to, leading_lanes(count), x); }

inline Floats rounded_to_half(Floats x) {
  return _mm512_maskz_cvtph_ps(kEvery, _mm512_maskz_cvtps_ph(kEvery, x, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace
}  // namespace weft::cpu
