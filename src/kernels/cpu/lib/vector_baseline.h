#pragma once

// The operations of vector.h on x86-64-v2 (SSE4.2): 4 lanes, 16 registers, neither FMA nor 16-bit floats.

#include <nmmintrin.h>

#include "kernels/cpu/lib/vector.h"

namespace weft::cpu {
namespace {

constexpr int kLanes = 4;
constexpr bool kWideDot = false;
constexpr int kFloatTileRows = 4;
using Floats = __m128;
using Codes = __m128i;

WEFT_VECTOR Floats zero_floats() { return _mm_setzero_ps(); }
WEFT_VECTOR Floats spread(float x) { return _mm_set1_ps(x); }
WEFT_VECTOR Floats load_floats(const void* from) { return _mm_loadu_ps(static_cast<const float*>(from)); }
WEFT_VECTOR void store_floats(void* to, Floats x) { _mm_storeu_ps(static_cast<float*>(to), x); }
WEFT_VECTOR Floats add(Floats a, Floats b) { return _mm_add_ps(a, b); }
WEFT_VECTOR Floats multiply(Floats a, Floats b) { return _mm_mul_ps(a, b); }
WEFT_VECTOR Floats multiply_add(Floats a, Floats b, Floats c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }

// a + b rounded to odd: the exact sum cut to 53 bits, the last bit set when it was cut. Rounding that to f32 once more
// gives the f32 nearest to the exact sum, since 53 >= 24 + 2 (Boldo and Melquiond, "Emulation of FMA and correctly
// rounded sums", 2008). The error of the nearest sum is Knuth's; it is NaN for infinities, which are left alone.
WEFT_VECTOR __m128d add_to_odd(__m128d a, __m128d b) {
  const __m128d sum = _mm_add_pd(a, b);
  const __m128d b_part = _mm_sub_pd(sum, a);
  const __m128d error = _mm_add_pd(_mm_sub_pd(a, _mm_sub_pd(sum, b_part)), _mm_sub_pd(b, b_part));
  const __m128d zero = _mm_setzero_pd();
  const __m128i inexact = _mm_castpd_si128(_mm_or_pd(_mm_cmplt_pd(error, zero), _mm_cmpgt_pd(error, zero)));
  const __m128i bits = _mm_castpd_si128(sum);
  const __m128i step = _mm_and_si128(_mm_andnot_si128(bits, _mm_set1_epi64x(1)), inexact);
  const __m128i towards_zero = _mm_srli_epi64(_mm_xor_si128(bits, _mm_castpd_si128(error)), 63);
  const __m128i back = _mm_slli_epi64(_mm_and_si128(step, towards_zero), 1);
  return _mm_castsi128_pd(_mm_sub_epi64(_mm_add_epi64(bits, step), back));
}

// The product of two f32 is exact in f64.
WEFT_VECTOR Floats fused_multiply_add(Floats a, Floats b, Floats c) {
  const __m128d low = add_to_odd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
  const __m128d high = add_to_odd(_mm_mul_pd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b))),
                                  _mm_cvtps_pd(_mm_movehl_ps(c, c)));
  return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

// A multiplication corrects the exponent, which also makes subnormals right. Infinity and NaN get the exponent of f32.
WEFT_VECTOR Floats load_halves(const void* from) {
  const __m128i half = _mm_cvtepu16_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
  const __m128i magnitude = _mm_and_si128(half, _mm_set1_epi32(0x7fff));
  const __m128i sign = _mm_slli_epi32(_mm_xor_si128(half, magnitude), 16);
  const __m128 scaled = _mm_mul_ps(_mm_castsi128_ps(_mm_slli_epi32(magnitude, 13)), _mm_set1_ps(0x1p112f));
  const __m128i special = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7bff));
  const __m128i exponent = _mm_and_si128(special, _mm_set1_epi32(0x7f800000));
  return _mm_or_ps(scaled, _mm_castsi128_ps(_mm_or_si128(sign, exponent)));
}
// Normal results round in integers, with a carry into the exponent. Subnormal ones (below 2^-14) are rounded by adding
// 0.5f, whose last bit is worth 2^-24, the smallest f16.
WEFT_VECTOR void store_halves(void* to, Floats x) {
  const __m128i bits = _mm_castps_si128(x);
  const __m128i magnitude = _mm_and_si128(bits, _mm_set1_epi32(0x7fffffff));
  const __m128i sign = _mm_srli_epi32(_mm_xor_si128(bits, magnitude), 16);
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(magnitude, 13), _mm_set1_epi32(1));
  const __m128i rebias = _mm_set1_epi32(static_cast<int>(0xfff - (112u << 23)));
  const __m128i normal = _mm_srli_epi32(_mm_add_epi32(_mm_add_epi32(magnitude, rebias), odd), 13);
  const __m128i shifted = _mm_castps_si128(_mm_add_ps(_mm_castsi128_ps(magnitude), _mm_set1_ps(0.5f)));
  const __m128i subnormal = _mm_sub_epi32(shifted, _mm_set1_epi32(0x3f000000));
  const __m128i is_subnormal = _mm_cmplt_epi32(magnitude, _mm_set1_epi32(0x38800000));
  const __m128i is_nan = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7f800000));
  const __m128i special = _mm_or_si128(_mm_set1_epi32(0x7c00), _mm_and_si128(is_nan, _mm_set1_epi32(0x200)));
  const __m128i is_special = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x477fffff));
  const __m128i finite = _mm_blendv_epi8(normal, subnormal, is_subnormal);
  const __m128i half = _mm_or_si128(_mm_blendv_epi8(finite, special, is_special), sign);
  _mm_storel_epi64(static_cast<__m128i*>(to), _mm_packus_epi32(half, half));
}
WEFT_VECTOR Floats load_bfloats(const void* from) {
  const __m128i wide = _mm_cvtepu16_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
  return _mm_castsi128_ps(_mm_slli_epi32(wide, 16));
}
WEFT_VECTOR Codes bfloat_bits(Floats x) {
  const __m128i bits = _mm_castps_si128(x);
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  const __m128i rounded = _mm_add_epi32(bits, _mm_add_epi32(odd, _mm_set1_epi32(0x7fff)));
  const __m128i quiet = _mm_or_si128(bits, _mm_set1_epi32(0x400000));
  const __m128i is_nan = _mm_castps_si128(_mm_cmpunord_ps(x, x));
  return _mm_srli_epi32(_mm_blendv_epi8(rounded, quiet, is_nan), 16);
}
WEFT_VECTOR void store_bfloats(void* to, Floats x) {
  const __m128i high = bfloat_bits(x);
  _mm_storel_epi64(static_cast<__m128i*>(to), _mm_packus_epi32(high, high));
}

WEFT_VECTOR Codes zero_codes() { return _mm_setzero_si128(); }
WEFT_VECTOR Codes load_codes(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
WEFT_VECTOR void store_codes(void* to, Codes x) { _mm_storeu_si128(static_cast<__m128i*>(to), x); }
WEFT_VECTOR Codes spread_four(const void* from) { return _mm_set1_epi32(*static_cast<const FourBytes*>(from)); }
WEFT_VECTOR Codes low_nibbles(Codes x) { return _mm_and_si128(x, _mm_set1_epi8(15)); }
WEFT_VECTOR Codes high_nibbles(Codes x) { return _mm_and_si128(_mm_srli_epi16(x, 4), _mm_set1_epi8(15)); }
typedef std::uint16_t Words __attribute__((vector_size(sizeof(Codes))));
WEFT_VECTOR Codes move_bits(Codes x, int from, int to, int bits) {
  const Words words = reinterpret_cast<Words>(x);
  const Words moved = from > to ? words >> (from - to) : words << (to - from);
  return _mm_and_si128(reinterpret_cast<Codes>(moved), _mm_set1_epi8(static_cast<char>(((1 << bits) - 1) << to)));
}
WEFT_VECTOR Codes either(Codes a, Codes b) { return _mm_or_si128(a, b); }
WEFT_VECTOR Codes flip_bits(Codes a, Codes b) { return _mm_xor_si128(a, b); }
WEFT_VECTOR Codes add_bytes(Codes a, Codes b) { return _mm_add_epi8(a, b); }
WEFT_VECTOR Codes load_table(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
WEFT_VECTOR Codes look_up(Codes table, Codes x) { return _mm_shuffle_epi8(table, x); }
WEFT_VECTOR Codes load_signed(const void* from) {
  return _mm_cvtepi8_epi32(_mm_cvtsi32_si128(*static_cast<const FourBytes*>(from)));
}
WEFT_VECTOR Codes load_unsigned(const void* from) {
  return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(*static_cast<const FourBytes*>(from)));
}
WEFT_VECTOR Codes dot(Codes sum, Codes weight, Codes x) {
  sum = _mm_add_epi16(sum, _mm_maddubs_epi16(weight, x));
  WEFT_KEEP_ORDER("x", sum);
  return sum;
}
WEFT_VECTOR Codes whole_dot(Codes sum) { return _mm_madd_epi16(sum, _mm_set1_epi16(1)); }
WEFT_VECTOR Codes whole_dot(Codes low, Codes high) {
  return _mm_add_epi32(_mm_madd_epi16(low, _mm_set1_epi16(1)), _mm_madd_epi16(high, _mm_set1_epi16(16)));
}

template <int index>
WEFT_VECTOR Codes nibble(Codes x) {
  return _mm_and_si128(_mm_srli_epi32(x, 4 * index), _mm_set1_epi32(15));
}
template <int index>
WEFT_VECTOR Codes byte(Codes x) {
  return _mm_and_si128(_mm_srli_epi32(x, 8 * index), _mm_set1_epi32(255));
}
WEFT_VECTOR Codes load_shorts(const void* from) {
  return _mm_cvtepu16_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
}
template <int count>
WEFT_VECTOR Codes shift_left(Codes x) {
  return _mm_slli_epi32(x, count);
}
template <int count>
WEFT_VECTOR Codes shift_right(Codes x) {
  return _mm_srli_epi32(x, count);
}
WEFT_VECTOR Codes lane_bits(Codes x, int bits) { return _mm_and_si128(x, _mm_set1_epi32(bits)); }
WEFT_VECTOR Floats as_floats(Codes x) { return _mm_castsi128_ps(x); }
WEFT_VECTOR Codes add(Codes a, Codes b) { return _mm_add_epi32(a, b); }
WEFT_VECTOR Codes subtract(Codes x, int y) { return _mm_sub_epi32(x, _mm_set1_epi32(y)); }
WEFT_VECTOR Floats to_floats(Codes x) { return _mm_cvtepi32_ps(x); }
WEFT_VECTOR Floats even_bfloats(Codes x) { return _mm_castsi128_ps(_mm_slli_epi32(x, 16)); }
WEFT_VECTOR Floats odd_bfloats(Codes x) {
  return _mm_castsi128_ps(_mm_and_si128(x, _mm_set1_epi32(static_cast<int>(0xffff0000u))));
}

}  // namespace
}  // namespace weft::cpu
