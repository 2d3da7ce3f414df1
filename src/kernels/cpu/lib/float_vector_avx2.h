#pragma once

// kLanes floats in a register, for objects built with AVX2, FMA and F16C. Arithmetic and comparisons are the compiler's
// vector operators. This header has the other operations, under the same names for every instruction set. Everything
// has internal linkage.

#include <cstdint>

#include <immintrin.h>

#include "kernels/cpu/lib/element.h"

namespace weft::cpu {
namespace {

constexpr int kLanes = 8;
// Rows and vectors of the attention tile: 6 x 2 accumulators of the 16 registers.
constexpr int kWideTileVectors = 2;
using Floats = __m256;
using Integers = std::int32_t __attribute__((vector_size(32)));

inline Floats fill(float value) { return _mm256_set1_ps(value); }
inline Floats square_root(Floats x) { return _mm256_sqrt_ps(x); }
inline Floats round_even(Floats x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline Floats truncated(Floats x) { return _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
// a > b ? a : b and a < b ? a : b: the second argument if either is NaN.
inline Floats larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }
inline Floats smaller(Floats a, Floats b) { return _mm256_min_ps(a, b); }
// a * b + c, with one rounding if the instruction set has that. Row-wise ops use it only where this does not change the
// bits of a result.
constexpr bool kFusesMultiplyAdd = true;
inline Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

// For words of 16 bits.
inline Integers smaller_words(Integers a, Integers b) {
  return reinterpret_cast<Integers>(_mm256_min_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
inline Integers smaller_unsigned_words(Integers a, Integers b) {
  return reinterpret_cast<Integers>(_mm256_min_epu16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

inline Integers larger_unsigned_words(Integers a, Integers b) {
  return reinterpret_cast<Integers>(_mm256_max_epu16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

inline Integers leading_lanes(int count) {
  const Integers lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return lane < count;
}

inline Floats load(const float* from) { return _mm256_loadu_ps(from); }
inline Floats load(const Half* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
inline Floats load(const Brain* from) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
// kLanes bytes as integers.
inline Integers load_bytes(const std::uint8_t* from) {
  return reinterpret_cast<Integers>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
inline Integers load_signed_bytes(const std::uint8_t* from) {
  return reinterpret_cast<Integers>(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
// kLanes / 4 pieces of 16 bytes, each at `offset` from its address. The interleaving is of the low or the high halves
// of each 128 bits.
using Bytes = std::uint8_t __attribute__((vector_size(32)));
inline Bytes load_pieces(const std::uint8_t* const* from, std::int64_t offset) {
  const auto piece = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[i] + offset)); };
  return reinterpret_cast<Bytes>(_mm256_inserti128_si256(_mm256_castsi128_si256(piece(0)), piece(1), 1));
}
inline Bytes interleave_low(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm256_unpacklo_epi8(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
inline Bytes interleave_high(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm256_unpackhi_epi8(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
// 2 * kLanes signed bytes as words.
using HalfWords = std::int16_t __attribute__((vector_size(32)));
inline HalfWords load_signed_words(const std::uint8_t* from) {
  return reinterpret_cast<HalfWords>(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
inline void store(float* to, Floats x) { _mm256_storeu_ps(to, x); }
inline void store(Half* to, Floats x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
// The low 16 bits of each lane.
inline void store_low_halves(std::uint16_t* to, Integers x) {
  const __m256i wide = reinterpret_cast<__m256i>(x);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
}
// Stores lanes as bytes; they hold values in [-128, 127].
inline void store_bytes(std::int8_t* to, Integers x) {
  const __m256i wide = reinterpret_cast<__m256i>(x);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(words, words));
}
// Stores, for each of 32 values in (-129, 128), the nearest integer, ties to even.
inline void store_nearest_bytes(std::int8_t* to, const Floats* x) {
  const __m256i first = _mm256_packs_epi32(_mm256_cvtps_epi32(x[0]), _mm256_cvtps_epi32(x[1]));
  const __m256i second = _mm256_packs_epi32(_mm256_cvtps_epi32(x[2]), _mm256_cvtps_epi32(x[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_permutevar8x32_epi32(_mm256_packs_epi16(first, second), order));
}

// The same if x[0] and x[2] hold the even ones of 16 values each, and x[1] and x[3] the odd ones.
inline void store_nearest_byte_pairs(std::int8_t* to, const Floats* x) {
  const __m256i even = _mm256_packs_epi32(_mm256_cvtps_epi32(x[0]), _mm256_cvtps_epi32(x[2]));
  const __m256i odd = _mm256_packs_epi32(_mm256_cvtps_epi32(x[1]), _mm256_cvtps_epi32(x[3]));
  const __m256i bytes = _mm256_or_si256(_mm256_and_si256(even, _mm256_set1_epi16(0xff)), _mm256_slli_epi16(odd, 8));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(bytes, 0xd8));
}
// Stores, for each of 32 values in [bias, bias + 127], at most 2^15, the value minus the bias, with the sign of a float
// in the highest bit.
inline void store_signed_bytes(std::int8_t* to, const Integers* x, int bias, const Floats* signs) {
  const auto packed = [](auto a, auto b) {
    return _mm256_packs_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
  };
  const __m256i less = _mm256_set1_epi16(static_cast<short>(bias));
  const __m256i bytes = _mm256_packs_epi16(_mm256_sub_epi16(packed(x[0], x[1]), less),  //
                                           _mm256_sub_epi16(packed(x[2], x[3]), less));
  const __m256i sign = _mm256_and_si256(_mm256_packs_epi16(packed(signs[0], signs[1]), packed(signs[2], signs[3])),
                                        _mm256_set1_epi8(-128));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(_mm256_or_si256(bytes, sign), order));
}
inline void store_signed_byte_pairs(std::int8_t* to, const Integers* x, int bias, const Floats* signs) {
  const auto packed = [](auto a, auto b) {
    return _mm256_packs_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
  };
  const __m256i less = _mm256_set1_epi16(static_cast<short>(bias * 257));
  const __m256i bytes =
      _mm256_sub_epi16(_mm256_add_epi16(packed(x[0], x[2]), _mm256_slli_epi16(packed(x[1], x[3]), 8)), less);
  const __m256i even = _mm256_srli_epi16(packed(signs[0], signs[2]), 8), odd = packed(signs[1], signs[3]);
  const __m256i sign = _mm256_or_si256(_mm256_and_si256(even, _mm256_set1_epi16(0x80)),
                                       _mm256_and_si256(odd, _mm256_set1_epi16(INT16_MIN)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(_mm256_or_si256(bytes, sign), 0xd8));
}

// 16-bit words: the even ones of `even` and the odd ones of `odd`.
inline Integers blended_words(Integers even, Integers odd) {
  return reinterpret_cast<Integers>(
      _mm256_blend_epi16(reinterpret_cast<__m256i>(even), reinterpret_cast<__m256i>(odd), 0xaa));
}
// Stores bytes that were packed in each 128-bit half.
inline void store_in_order(std::int8_t* to, __m256i bytes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(bytes, 0xd8));
}
inline __m256i low_bytes(const Integers* words) {
  const __m256i low = _mm256_set1_epi16(0xff);
  return _mm256_packus_epi16(_mm256_and_si256(reinterpret_cast<__m256i>(words[0]), low),
                             _mm256_and_si256(reinterpret_cast<__m256i>(words[1]), low));
}
inline __m256i bytes_of_the_signs(const Integers* words) {
  return _mm256_packs_epi16(reinterpret_cast<__m256i>(words[0]), reinterpret_cast<__m256i>(words[1]));
}
// Stores the low bytes of 32 words, which are in [0, 127], with the signs of 32 other words as their highest bits.
inline void store_low_bytes_or_signs(std::int8_t* to, const Integers* words, const Integers* signs) {
  const __m256i sign = _mm256_and_si256(bytes_of_the_signs(signs), _mm256_set1_epi8(-128));
  store_in_order(to, _mm256_or_si256(low_bytes(words), sign));
}
// The same, but negates a byte if the other word is negative.
inline void store_low_bytes_negated(std::int8_t* to, const Integers* words, const Integers* signs) {
  const __m256i sign = _mm256_or_si256(bytes_of_the_signs(signs), _mm256_set1_epi8(1));
  store_in_order(to, _mm256_sign_epi8(low_bytes(words), sign));
}

inline Floats load_first(const float* from, int count) {
  return _mm256_maskload_ps(from, reinterpret_cast<__m256i>(leading_lanes(count)));
}
inline void store_first(float* to, Floats x, int count) {
  _mm256_maskstore_ps(to, reinterpret_cast<__m256i>(leading_lanes(count)), x);
}

inline Floats rounded_to_half(Floats x) { return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)); }

}  // namespace
}  // namespace weft::cpu
