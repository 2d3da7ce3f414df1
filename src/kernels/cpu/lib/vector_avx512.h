#pragma once

// The operations of vector.h on AVX-512 F, BW, DQ, VL: 16 lanes, 32 registers; dots with VNNI and BF16 if the object is
// built for them.

// g++ 12 takes the undefined registers of its own AVX-512 intrinsics for uninitialized variables.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/lib/subnormals_as_zeros.h"
#include "kernels/cpu/lib/vector.h"

#define WEFT_FUSED_MULTIPLY_ADD

namespace weft::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kFloatTileRows = 8;
using Floats = __m512;
using Codes = __m512i;

WEFT_VECTOR Floats zero_floats() { return _mm512_setzero_ps(); }
WEFT_VECTOR Floats spread(float x) { return _mm512_set1_ps(x); }
WEFT_VECTOR Floats load_floats(const void* from) { return _mm512_loadu_ps(from); }
WEFT_VECTOR void store_floats(void* to, Floats x) { _mm512_storeu_ps(to, x); }
WEFT_VECTOR Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
WEFT_VECTOR Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
WEFT_VECTOR Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
WEFT_VECTOR Floats fused_multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

WEFT_VECTOR Floats load_halves(const void* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
}
WEFT_VECTOR void store_halves(void* to, Floats x) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
WEFT_VECTOR Floats load_bfloats(const void* from) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
// Uses integers, because the processor's own conversion flushes denormals.
WEFT_VECTOR Codes bfloat_bits(Floats x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_srli_epi32(kept, 16);
}
WEFT_VECTOR void store_bfloats(void* to, Floats x) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm512_cvtepi32_epi16(bfloat_bits(x)));
}

WEFT_VECTOR Codes zero_codes() { return _mm512_setzero_si512(); }
WEFT_VECTOR Codes load_codes(const void* from) { return _mm512_loadu_si512(from); }
WEFT_VECTOR void store_codes(void* to, Codes x) { _mm512_storeu_si512(to, x); }
WEFT_VECTOR Codes subtract_bytes(Codes x, int y) { return _mm512_sub_epi8(x, _mm512_set1_epi8(static_cast<char>(y))); }
WEFT_VECTOR Codes spread_four(const void* from) { return _mm512_set1_epi32(*static_cast<const FourBytes*>(from)); }
WEFT_VECTOR Codes low_nibbles(Codes x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
WEFT_VECTOR Codes high_nibbles(Codes x) { return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15)); }
typedef std::uint16_t Words __attribute__((vector_size(sizeof(Codes))));
WEFT_VECTOR Codes move_bits(Codes x, int from, int to, int bits) {
  const Words words = reinterpret_cast<Words>(x);
  const Words moved = from > to ? words >> (from - to) : words << (to - from);
  return _mm512_and_si512(reinterpret_cast<Codes>(moved), _mm512_set1_epi8(static_cast<char>(((1 << bits) - 1) << to)));
}
WEFT_VECTOR Codes either(Codes a, Codes b) { return _mm512_or_si512(a, b); }
WEFT_VECTOR Codes flip_bits(Codes a, Codes b) { return _mm512_xor_si512(a, b); }
WEFT_VECTOR Codes add_bytes(Codes a, Codes b) { return _mm512_add_epi8(a, b); }
WEFT_VECTOR Codes load_table(const void* from) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
WEFT_VECTOR Codes look_up(Codes table, Codes x) { return _mm512_shuffle_epi8(table, x); }
WEFT_VECTOR Codes load_signed(const void* from) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
WEFT_VECTOR Codes load_unsigned(const void* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}
#ifdef __AVX512VNNI__
constexpr bool kWideDot = true;
WEFT_VECTOR Codes dot(Codes sum, Codes weight, Codes x) { return _mm512_dpbusd_epi32(sum, weight, x); }
WEFT_VECTOR Codes whole_dot(Codes sum) { return sum; }
#else
constexpr bool kWideDot = false;
WEFT_VECTOR Codes dot(Codes sum, Codes weight, Codes x) {
  sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(weight, x));
  WEFT_KEEP_ORDER("v", sum);
  return sum;
}
WEFT_VECTOR Codes whole_dot(Codes sum) { return _mm512_madd_epi16(sum, _mm512_set1_epi16(1)); }
#endif
WEFT_VECTOR Codes whole_dot(Codes low, Codes high) {
  return _mm512_add_epi32(_mm512_madd_epi16(low, _mm512_set1_epi16(1)), _mm512_madd_epi16(high, _mm512_set1_epi16(16)));
}

template <int index>
WEFT_VECTOR Codes nibble(Codes x) {
  return _mm512_and_si512(_mm512_srli_epi32(x, 4 * index), _mm512_set1_epi32(15));
}
template <int index>
WEFT_VECTOR Codes byte(Codes x) {
  return _mm512_and_si512(_mm512_srli_epi32(x, 8 * index), _mm512_set1_epi32(255));
}
WEFT_VECTOR Codes load_shorts(const void* from) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
}
template <int count>
WEFT_VECTOR Codes shift_left(Codes x) {
  return _mm512_slli_epi32(x, count);
}
template <int count>
WEFT_VECTOR Codes shift_right(Codes x) {
  return _mm512_srli_epi32(x, count);
}
WEFT_VECTOR Codes lane_bits(Codes x, int bits) { return _mm512_and_si512(x, _mm512_set1_epi32(bits)); }
WEFT_VECTOR Floats as_floats(Codes x) { return _mm512_castsi512_ps(x); }
WEFT_VECTOR Codes add(Codes a, Codes b) { return _mm512_add_epi32(a, b); }
WEFT_VECTOR Codes subtract(Codes x, int y) { return _mm512_sub_epi32(x, _mm512_set1_epi32(y)); }
WEFT_VECTOR Floats to_floats(Codes x) { return _mm512_cvtepi32_ps(x); }
WEFT_VECTOR Floats even_bfloats(Codes x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }
WEFT_VECTOR Floats odd_bfloats(Codes x) {
  return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}

#ifdef __AVX512BF16__
WEFT_VECTOR Floats bfloat_dot(Floats sum, Codes a, Codes b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}
WEFT_VECTOR void store_normal_bfloats(void* to, Floats x) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
}
#endif

}  // namespace
}  // namespace weft::cpu
