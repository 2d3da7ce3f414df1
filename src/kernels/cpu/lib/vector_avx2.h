#pragma once

// The operations of vector.h on AVX2, FMA and F16C: 8 lanes, 16 registers.

#include <immintrin.h>

#include "kernels/cpu/lib/subnormals_as_zeros.h"
#include "kernels/cpu/lib/vector.h"

#define WEFT_FUSED_MULTIPLY_ADD

namespace weft::cpu {
namespace {

constexpr int kLanes = 8;
constexpr bool kWideDot = false;
constexpr int kFloatTileRows = 6;
using Floats = __m256;
using Codes = __m256i;

WEFT_VECTOR Floats zero_floats() { return _mm256_setzero_ps(); }
WEFT_VECTOR Floats spread(float x) { return _mm256_set1_ps(x); }
WEFT_VECTOR Floats load_floats(const void* from) { return _mm256_loadu_ps(static_cast<const float*>(from)); }
WEFT_VECTOR void store_floats(void* to, Floats x) { _mm256_storeu_ps(static_cast<float*>(to), x); }
WEFT_VECTOR Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
WEFT_VECTOR Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
WEFT_VECTOR Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
WEFT_VECTOR Floats fused_multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

WEFT_VECTOR Floats load_halves(const void* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
WEFT_VECTOR void store_halves(void* to, Floats x) {
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
WEFT_VECTOR Floats load_bfloats(const void* from) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
WEFT_VECTOR Codes bfloat_bits(Floats x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
}
WEFT_VECTOR void store_bfloats(void* to, Floats x) {
  const __m256i high = bfloat_bits(x);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
}

WEFT_VECTOR Codes zero_codes() { return _mm256_setzero_si256(); }
WEFT_VECTOR Codes load_codes(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
WEFT_VECTOR void store_codes(void* to, Codes x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
WEFT_VECTOR Codes spread_four(const void* from) { return _mm256_set1_epi32(*static_cast<const FourBytes*>(from)); }
WEFT_VECTOR Codes low_nibbles(Codes x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
WEFT_VECTOR Codes high_nibbles(Codes x) { return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15)); }
typedef std::uint16_t Words __attribute__((vector_size(sizeof(Codes))));
WEFT_VECTOR Codes move_bits(Codes x, int from, int to, int bits) {
  const Words words = reinterpret_cast<Words>(x);
  const Words moved = from > to ? words >> (from - to) : words << (to - from);
  return _mm256_and_si256(reinterpret_cast<Codes>(moved), _mm256_set1_epi8(static_cast<char>(((1 << bits) - 1) << to)));
}
WEFT_VECTOR Codes either(Codes a, Codes b) { return _mm256_or_si256(a, b); }
WEFT_VECTOR Codes flip_bits(Codes a, Codes b) { return _mm256_xor_si256(a, b); }
WEFT_VECTOR Codes add_bytes(Codes a, Codes b) { return _mm256_add_epi8(a, b); }
WEFT_VECTOR Codes load_table(const void* from) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
WEFT_VECTOR Codes look_up(Codes table, Codes x) { return _mm256_shuffle_epi8(table, x); }
WEFT_VECTOR Codes load_signed(const void* from) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
}
WEFT_VECTOR Codes load_unsigned(const void* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
}
WEFT_VECTOR Codes dot(Codes sum, Codes weight, Codes x) {
  sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(weight, x));
  WEFT_KEEP_ORDER("x", sum);
  return sum;
}
WEFT_VECTOR Codes whole_dot(Codes sum) { return _mm256_madd_epi16(sum, _mm256_set1_epi16(1)); }
WEFT_VECTOR Codes whole_dot(Codes low, Codes high) {
  return _mm256_add_epi32(_mm256_madd_epi16(low, _mm256_set1_epi16(1)), _mm256_madd_epi16(high, _mm256_set1_epi16(16)));
}

template <int index>
WEFT_VECTOR Codes nibble(Codes x) {
  return _mm256_and_si256(_mm256_srli_epi32(x, 4 * index), _mm256_set1_epi32(15));
}
template <int index>
WEFT_VECTOR Codes byte(Codes x) {
  return _mm256_and_si256(_mm256_srli_epi32(x, 8 * index), _mm256_set1_epi32(255));
}
WEFT_VECTOR Codes load_shorts(const void* from) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
template <int count>
WEFT_VECTOR Codes shift_left(Codes x) {
  return _mm256_slli_epi32(x, count);
}
template <int count>
WEFT_VECTOR Codes shift_right(Codes x) {
  return _mm256_srli_epi32(x, count);
}
WEFT_VECTOR Codes lane_bits(Codes x, int bits) { return _mm256_and_si256(x, _mm256_set1_epi32(bits)); }
WEFT_VECTOR Floats as_floats(Codes x) { return _mm256_castsi256_ps(x); }
WEFT_VECTOR Codes add(Codes a, Codes b) { return _mm256_add_epi32(a, b); }
WEFT_VECTOR Codes subtract(Codes x, int y) { return _mm256_sub_epi32(x, _mm256_set1_epi32(y)); }
WEFT_VECTOR Floats to_floats(Codes x) { return _mm256_cvtepi32_ps(x); }
WEFT_VECTOR Floats even_bfloats(Codes x) { return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)); }
WEFT_VECTOR Floats odd_bfloats(Codes x) {
  return _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
}

}  // namespace
}  // namespace weft::cpu
