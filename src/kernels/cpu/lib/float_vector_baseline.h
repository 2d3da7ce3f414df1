#pragma once

// kLanes floats, for objects built for x86-64-v2: parts of 128 bits, conversions of 16-bit floats by integer
// arithmetic. See float_vector_avx2.h. A test may ask for more lanes than one part to run the shapes of wider
// instruction sets.

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "kernels/cpu/lib/element.h"

#ifndef WEFT_FLOAT_LANES
#define WEFT_FLOAT_LANES 4
#endif

namespace weft::cpu {
namespace {

constexpr int kLanes = WEFT_FLOAT_LANES;
constexpr int kWideTileVectors = kLanes == 16 ? 4 : 2;
constexpr int kParts = kLanes / 4;
using Floats = float __attribute__((vector_size(4 * kLanes)));
using Integers = std::int32_t __attribute__((vector_size(4 * kLanes)));

template <class Vector>
inline __m128i part(const Vector& x, int index) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(&x) + index);
}
template <class Vector>
inline void set_part(Vector& x, int index, __m128i bits) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&x) + index, bits);
}

inline Floats fill(float value) {
  Floats x;
  for (int i = 0; i < kParts; ++i) set_part(x, i, _mm_castps_si128(_mm_set1_ps(value)));
  return x;
}
inline Floats square_root(Floats x) {
  for (int i = 0; i < kParts; ++i) set_part(x, i, _mm_castps_si128(_mm_sqrt_ps(_mm_castsi128_ps(part(x, i)))));
  return x;
}
template <int mode>
inline Floats rounded_by_mode(Floats x) {
  for (int i = 0; i < kParts; ++i) {
    set_part(x, i, _mm_castps_si128(_mm_round_ps(_mm_castsi128_ps(part(x, i)), mode | _MM_FROUND_NO_EXC)));
  }
  return x;
}
inline Floats round_even(Floats x) { return rounded_by_mode<_MM_FROUND_TO_NEAREST_INT>(x); }
inline Floats truncated(Floats x) { return rounded_by_mode<_MM_FROUND_TO_ZERO>(x); }
inline Floats larger(Floats a, Floats b) {
  for (int i = 0; i < kParts; ++i)
    set_part(a, i, _mm_castps_si128(_mm_max_ps(_mm_castsi128_ps(part(a, i)), _mm_castsi128_ps(part(b, i)))));
  return a;
}
inline Floats smaller(Floats a, Floats b) {
  for (int i = 0; i < kParts; ++i)
    set_part(a, i, _mm_castps_si128(_mm_min_ps(_mm_castsi128_ps(part(a, i)), _mm_castsi128_ps(part(b, i)))));
  return a;
}
inline Integers smaller_words(Integers a, Integers b) {
  for (int i = 0; i < kParts; ++i) set_part(a, i, _mm_min_epi16(part(a, i), part(b, i)));
  return a;
}
inline Integers smaller_unsigned_words(Integers a, Integers b) {
  for (int i = 0; i < kParts; ++i) set_part(a, i, _mm_min_epu16(part(a, i), part(b, i)));
  return a;
}
inline Integers larger_unsigned_words(Integers a, Integers b) {
  for (int i = 0; i < kParts; ++i) set_part(a, i, _mm_max_epu16(part(a, i), part(b, i)));
  return a;
}
constexpr bool kFusesMultiplyAdd = false;
inline Floats multiply_add(Floats a, Floats b, Floats c) { return a * b + c; }

// The value of f16 codes: scaling by 2^112 as a float gives the exponent its own bias and makes denormals exact.
inline Floats half_value(Integers bits) {
  const Integers magnitude = bits & 0x7fff;
  const Floats scaled = reinterpret_cast<Floats>(magnitude << 13) * 0x1p112f;
  const Integers value = reinterpret_cast<Integers>(scaled) | ((magnitude >= 0x7c00) & 0x7f800000) |
                         ((magnitude > 0x7c00) & 0x400000);  // a NaN becomes quiet
  return reinterpret_cast<Floats>(value | ((bits & 0x8000) << 16));
}
// The f16 codes nearest to x, ties to even. Below 2^-14, adding 0.5 leaves the rounded denormal in the low bits.
inline Integers half_bits(Floats x) {
  const Integers bits = reinterpret_cast<Integers>(x);
  const Integers magnitude = bits & 0x7fffffff;
  const Integers small = reinterpret_cast<Integers>(reinterpret_cast<Floats>(magnitude) + 0.5f) - 0x3f000000;
  const Integers is_even = ~(magnitude >> 13) & 1;
  const Integers normal = (magnitude - is_even - 0x37fff000) >> 13;  // in any order without overflow
  const Integers large = 0x7c00 | ((magnitude > 0x7f800000) & (0x200 | ((magnitude >> 13) & 0x3ff)));
  const Integers value = magnitude >= 0x47800000 ? large : magnitude < 0x38800000 ? small : normal;
  return value | ((bits >> 16) & 0x8000);
}

inline Floats load(const float* from) {
  Floats x;
  for (int i = 0; i < kParts; ++i) set_part(x, i, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i));
  return x;
}
inline Integers load_low_halves(const std::uint16_t* from) {
  Integers x;
  for (int i = 0; i < kParts; ++i) {
    set_part(x, i, _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 4 * i))));
  }
  return x;
}
inline Floats load(const Half* from) { return half_value(load_low_halves(&from->bits)); }
inline Floats load(const Brain* from) { return reinterpret_cast<Floats>(load_low_halves(&from->bits) << 16); }
inline __m128i load_four_bytes(const std::uint8_t* from) {
  int bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return _mm_cvtsi32_si128(bytes);
}
inline Integers load_bytes(const std::uint8_t* from) {
  Integers x;
  for (int i = 0; i < kParts; ++i) set_part(x, i, _mm_cvtepu8_epi32(load_four_bytes(from + 4 * i)));
  return x;
}
inline Integers load_signed_bytes(const std::uint8_t* from) {
  Integers x;
  for (int i = 0; i < kParts; ++i) set_part(x, i, _mm_cvtepi8_epi32(load_four_bytes(from + 4 * i)));
  return x;
}
// kLanes / 4 pieces of 16 bytes, each at `offset` from its address. The interleaving is of the low or the high halves
// of each 128 bits.
using Bytes = std::uint8_t __attribute__((vector_size(4 * kLanes)));
inline Bytes load_pieces(const std::uint8_t* const* from, std::int64_t offset) {
  Bytes x;
  for (int i = 0; i < kParts; ++i) set_part(x, i, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[i] + offset)));
  return x;
}
inline Bytes interleave_low(Bytes a, Bytes b) {
  for (int i = 0; i < kParts; ++i) set_part(a, i, _mm_unpacklo_epi8(part(a, i), part(b, i)));
  return a;
}
inline Bytes interleave_high(Bytes a, Bytes b) {
  for (int i = 0; i < kParts; ++i) set_part(a, i, _mm_unpackhi_epi8(part(a, i), part(b, i)));
  return a;
}
// 2 * kLanes signed bytes as words.
using HalfWords = std::int16_t __attribute__((vector_size(4 * kLanes)));
inline HalfWords load_signed_words(const std::uint8_t* from) {
  HalfWords x;
  for (int i = 0; i < kParts; ++i)
    set_part(x, i, _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8 * i))));
  return x;
}
inline void store(float* to, Floats x) {
  for (int i = 0; i < kParts; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, part(x, i));
}
// Stores the low 16 bits of each lane; the other bits are 0.
inline void store_low_halves(std::uint16_t* to, Integers x) {
  for (int i = 0; i < kParts; ++i) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 4 * i), _mm_packus_epi32(part(x, i), part(x, i)));
  }
}
inline void store(Half* to, Floats x) { store_low_halves(&to->bits, half_bits(x)); }
// Stores lanes as bytes; they hold values in [-128, 127].
inline void store_bytes(std::int8_t* to, Integers x) {
  for (int i = 0; i < kParts; ++i) {
    const __m128i words = _mm_packs_epi32(part(x, i), part(x, i));
    const int bytes = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
    std::memcpy(to + 4 * i, &bytes, 4);
  }
}
inline void store_nearest_bytes(std::int8_t* to, const Floats* x) {
  for (int i = 0; i < 2; ++i) {
    __m128i words[4];
    for (int j = 0; j < 4; ++j) {
      const int at = 4 * i + j;
      words[j] = _mm_cvtps_epi32(_mm_castsi128_ps(part(x[at / kParts], at % kParts)));
    }
    const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(words[0], words[1]), _mm_packs_epi32(words[2], words[3]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, bytes);
  }
}

// Part `index` of all parts of several vectors.
template <class Vector>
inline __m128i part_of(const Vector* x, int index) {
  return part(x[index / kParts], index % kParts);
}
// Part `index` of all parts of the vectors with even index if odd is 0, with odd index if it is 1.
template <class Vector>
inline __m128i pair_part(const Vector* x, int index, int odd) {
  return part(x[index / kParts * 2 + odd], index % kParts);
}
inline __m128i nearest(__m128i bits) { return _mm_cvtps_epi32(_mm_castsi128_ps(bits)); }
inline void store_nearest_byte_pairs(std::int8_t* to, const Floats* x) {
  for (int i = 0; i < 2; ++i) {
    const auto words = [&](int odd) {
      return _mm_packs_epi32(nearest(pair_part(x, 2 * i, odd)), nearest(pair_part(x, 2 * i + 1, odd)));
    };
    const __m128i even = _mm_and_si128(words(0), _mm_set1_epi16(0xff));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, _mm_or_si128(even, _mm_slli_epi16(words(1), 8)));
  }
}
inline void store_signed_bytes(std::int8_t* to, const Integers* x, int bias, const Floats* signs) {
  const __m128i less = _mm_set1_epi16(static_cast<short>(bias));
  for (int i = 0; i < 2; ++i) {
    const auto packed = [i](const auto* from, int half) {
      return _mm_packs_epi32(part_of(from, 4 * i + 2 * half), part_of(from, 4 * i + 2 * half + 1));
    };
    const __m128i bytes = _mm_packs_epi16(_mm_sub_epi16(packed(x, 0), less), _mm_sub_epi16(packed(x, 1), less));
    const __m128i sign = _mm_and_si128(_mm_packs_epi16(packed(signs, 0), packed(signs, 1)), _mm_set1_epi8(-128));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, _mm_or_si128(bytes, sign));
  }
}
inline void store_signed_byte_pairs(std::int8_t* to, const Integers* x, int bias, const Floats* signs) {
  const __m128i less = _mm_set1_epi16(static_cast<short>(bias * 257));
  for (int i = 0; i < 2; ++i) {
    const auto packed = [i](const auto* from, int odd) {
      return _mm_packs_epi32(pair_part(from, 2 * i, odd), pair_part(from, 2 * i + 1, odd));
    };
    const __m128i bytes = _mm_sub_epi16(_mm_add_epi16(packed(x, 0), _mm_slli_epi16(packed(x, 1), 8)), less);
    const __m128i even = _mm_and_si128(_mm_srli_epi16(packed(signs, 0), 8), _mm_set1_epi16(0x80));
    const __m128i odd = _mm_and_si128(packed(signs, 1), _mm_set1_epi16(INT16_MIN));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, _mm_or_si128(bytes, _mm_or_si128(even, odd)));
  }
}

inline Integers blended_words(Integers even, Integers odd) {
  for (int i = 0; i < kParts; ++i) set_part(even, i, _mm_blend_epi16(part(even, i), part(odd, i), 0xaa));
  return even;
}
inline __m128i low_bytes(const Integers* words, int index) {
  const __m128i low = _mm_set1_epi16(0xff);
  return _mm_packus_epi16(_mm_and_si128(part_of(words, 2 * index), low),
                          _mm_and_si128(part_of(words, 2 * index + 1), low));
}
inline __m128i bytes_of_the_signs(const Integers* words, int index) {
  return _mm_packs_epi16(part_of(words, 2 * index), part_of(words, 2 * index + 1));
}
inline void store_low_bytes_or_signs(std::int8_t* to, const Integers* words, const Integers* signs) {
  for (int i = 0; i < 2; ++i) {
    const __m128i sign = _mm_and_si128(bytes_of_the_signs(signs, i), _mm_set1_epi8(-128));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, _mm_or_si128(low_bytes(words, i), sign));
  }
}
inline void store_low_bytes_negated(std::int8_t* to, const Integers* words, const Integers* signs) {
  for (int i = 0; i < 2; ++i) {
    const __m128i sign = _mm_or_si128(bytes_of_the_signs(signs, i), _mm_set1_epi8(1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + i, _mm_sign_epi8(low_bytes(words, i), sign));
  }
}

inline Floats load_first(const float* from, int count) {
  float buffer[kLanes] = {};
  std::memcpy(buffer, from, sizeof(float) * static_cast<unsigned>(count));
  return load(buffer);
}
inline void store_first(float* to, Floats x, int count) {
  float buffer[kLanes];
  store(buffer, x);
  std::memcpy(to, buffer, sizeof(float) * static_cast<unsigned>(count));
}

inline Floats rounded_to_half(Floats x) { return half_value(half_bits(x)); }

}  // namespace
}  // namespace weft::cpu
