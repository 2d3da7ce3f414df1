#pragma once

// Reference math: exp, sigmoid, tanh, erf, rsqrt and the row sum as fixed sequences of IEEE f32 operations, so that
// every kernel on every instruction set computes the same bits. Vector code repeats these functions line by line. It
// may use only + - * / sqrt (round to nearest even), compares, selects, min, max and integer operations on bit
// patterns. It must not use FMA and must be compiled with -ffp-contract=off.
//
//   Line here                     AVX2 (AVX-512 alike)
//   low > x ? low : x             _mm256_max_ps(low, x)     in this order: a NaN in x passes
//   high < x ? high : x           _mm256_min_ps(high, x)    in this order: a NaN in x passes
//   c ? a : b                     _mm256_blendv_ps(b, a, c), c an ordered compare (false for NaN)
//   bits, shift_right             _mm256_castps_si256, _mm256_srai_epi32
//
// Denormals are kept: kernels never set flush-to-zero. The largest errors over all f32, in units in the last place of
// the result: exp 1.0, sigmoid 2.5, tanh 1.0, erf 1.5. NaN gives NaN; infinities give limits. Polynomials are minimax
// fits (Lawson's iteration) whose coefficients were rounded to f32 one after the other.
//
// Everything is `static inline` and uses builtins only, because objects that are built for an instruction set must not
// have weak symbols.

#include <cstdint>

#include "tensor/float_bits.h"

namespace weft {

// exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2; exp(r) = 1 + (r + r^2 * p(r)).
struct ReferenceExpConstants {
  // exp(x) is 0 below `low` and infinite above `high`. Between them, n fits the two steps of scaling.
  static constexpr float low = -104.0f;
  static constexpr float high = 89.0f;
  static constexpr float inverse_ln2 = 0x1.715476p+0f;
  // 1.5 * 2^23. Adding it rounds to the nearest integer, which is then in the low bits.
  static constexpr float magic = 0x1.8p+23f;
  static constexpr std::uint32_t magic_bits = 0x4b400000u;
  // ln 2 in two parts; the first has 9 significant bits, so that n * ln2_high is exact.
  static constexpr float ln2_high = 0.693359375f;
  static constexpr float ln2_low = -2.12194440e-4f;
  // p(r) = p0 + p1 * r + ...; error 0.05 units in the last place of exp.
  static constexpr float p0 = 0x1.fffffcp-2f;
  static constexpr float p1 = 0x1.555492p-3f;
  static constexpr float p2 = 0x1.5558aap-5f;
  static constexpr float p3 = 0x1.12396cp-7f;
  static constexpr float p4 = 0x1.6a5236p-10f;
};

// tanh(x) = x + x * z * p(z), z = x^2, for |x| < split; else 1 - 1 / (exp(2 |x|) / 2 + 1 / 2), of |x|, then with the
// sign of x. The second form computes with pairs, a value and its rounding error: gelu_tanh adds 1 to tanh, which
// cancels, so that the last bit of tanh is many bits of the sum. The result is the nearest float except for 1 argument
// in 15 below 1, in 400 from 1 to 2, in 3,000 from 2 to 4, and in 20,000 from 4 to one_from.
struct ReferenceTanhConstants {
  static constexpr float split = 0.0625f;
  // tanh is 1 from here on, as in SLEEF, which torch calls; the nearest float is 1 - 2^-24 up to 9.01.
  static constexpr float one_from = 0x1.154246p+3f;
  // For arguments beyond one_from the second form is evaluated at this argument, where it gives 1.
  static constexpr float far_end = 10.0f;
  // 1.5 * 2^11. Adding it rounds to a multiple of 2^-12, which has at most 12 bits here.
  static constexpr float grid = 0x1.8p+11f;
  // The upper 12 bits of a significand: the product of two such floats is exact.
  static constexpr std::uint32_t head = 0xfffff000u;
  // The series' coefficients -1/3 and about 2/15. The terms after them are below 0.1 units.
  static constexpr float p0 = -0x1.555556p-2f;
  static constexpr float p1 = 0x1.1110p-3f;
};

// erf(x) = x + x * p(z), z = x^2, for |x| < split; else 1 - exp(q(|x|)), where q fits ln(erfc), of |x|, then with the
// sign of x. From `high` on, erf rounds to 1.
struct ReferenceErfConstants {
  static constexpr float split = 0.9f;
  static constexpr float high = 4.0f;
  static constexpr float p0 = 0x1.06eba8p-3f;
  static constexpr float p1 = -0x1.812740p-2f;
  static constexpr float p2 = 0x1.ce2d5cp-4f;
  static constexpr float p3 = -0x1.b7ffc4p-6f;
  static constexpr float p4 = 0x1.543718p-8f;
  static constexpr float p5 = -0x1.a52da8p-11f;
  static constexpr float p6 = 0x1.4be51cp-14f;
  static constexpr float q0 = -0x1.743c48p-13f;
  static constexpr float q1 = -0x1.20b432p+0f;
  static constexpr float q2 = -0x1.462cb2p-1f;
  static constexpr float q3 = -0x1.aa2316p-4f;
  static constexpr float q4 = 0x1.6cfce4p-6f;
  static constexpr float q5 = -0x1.908130p-9f;
  static constexpr float q6 = 0x1.9d850cp-13f;
};

// For 1 + exp(-x), the divisor of silu, with reference_exp's constants. x is clamped to these limits. Below exp(-86)
// the power adds nothing to 1; at the lower limit it is infinite.
struct ReferenceSiluConstants {
  static constexpr float low = -89.0f;
  static constexpr float high = 86.0f;
};

// The same for bf16 only: a minimax polynomial of degree 4 for half of 2^f, |f| <= 1/2, whose last bits were found by
// search. If products and sums are fused, silu rounds to the same bf16 as the definition for each of the 65,536
// operands, except for payloads of NaN.
struct Bf16SiluConstants {
  static constexpr float turned = -ReferenceExpConstants::inverse_ln2;
  static constexpr float p0 = 0.5f;
  static constexpr float p1 = 0x1.62e1cep-2f;
  static constexpr float p2 = 0x1.ebfa14p-4f;
  static constexpr float p3 = 0x1.c973e4p-6f;
  static constexpr float p4 = 0x1.3c86f4p-8f;
};

// exp(-|x|) for the sigmoid of a bf16, found in the same way. The polynomial computes 2^64 times 2^f, so that no power
// is denormal before it is divided by 2^64. Below -104 the result is 0. With it the sigmoid rounds to the same bf16 for
// each of the 65,536 operands, including NaN.
struct Bf16SigmoidConstants {
  static constexpr float low = -104.0f;
  static constexpr float p0 = 0x1p64f;
  static constexpr float p1 = 0x1.62e196p63f;
  static constexpr float p2 = 0x1.ebfaa6p61f;
  static constexpr float p3 = 0x1.c970cap59f;
  static constexpr float p4 = 0x1.3c9112p57f;
  static constexpr float unit = 0x1p-64f;
};

static inline float reference_exp(float x) {
  using C = ReferenceExpConstants;
  x = C::low > x ? C::low : x;
  x = C::high < x ? C::high : x;
  const float shifted = x * C::inverse_ln2 + C::magic;
  const float n = shifted - C::magic;
  const float r = (x - n * C::ln2_high) - n * C::ln2_low;
  float p = C::p4;
  p = p * r + C::p3;
  p = p * r + C::p2;
  p = p * r + C::p1;
  p = p * r + C::p0;
  const float y = (r * r * p + r) + 1.0f;
  // 2^n in two halves, each a normal number: the product rounds once, also if it is denormal.
  const std::uint32_t whole = bits_of_float(shifted) - C::magic_bits;
  const std::uint32_t half = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole) >> 1);
  const float first = float_of_bits((half + 127u) << 23);
  const float second = float_of_bits((whole - half + 127u) << 23);
  return (y * first) * second;
}

// 1 / (1 + exp(-x)), without losing small results to an infinite exp.
static inline float reference_sigmoid(float x) {
  const float e = reference_exp(float_of_bits(bits_of_float(x) | kFloatSign));  // exp(-|x|)
  const float numerator = x >= 0.0f ? 1.0f : e;
  return numerator / (1.0f + e);
}

// 1 - 1 / (exp(2 x) / 2 + 1 / 2) for x >= 0.
static inline float reference_tanh_far(float x) {
  using C = ReferenceTanhConstants;
  using E = ReferenceExpConstants;
  x = C::one_from < x ? C::far_end : x;
  const float twice = x + x;
  const float shifted = twice * E::inverse_ln2 + E::magic;
  const float n = shifted - E::magic;
  const float reduced = twice - n * E::ln2_high;
  const float low = n * E::ln2_low;
  const float r = reduced - low;
  float p = E::p4;
  p = p * r + E::p3;
  p = p * r + E::p2;
  p = p * r + E::p1;
  p = p * r + E::p0;
  const float rise = r * r * p - low;
  const float t = reduced + rise;
  const float t_rest = (reduced - t) + rise;
  // 2^(n - 1). The shift drops the bits of `magic`. The divisor is 2^(n - 1) * (1 + t) + 1 / 2.
  const float power = float_of_bits((bits_of_float(shifted) << 23) + 0x3f000000u);
  const float base = power + 0.5f;
  const float scaled = power * t;
  const float divisor = base + scaled;
  const float divisor_rest = ((base - divisor) + scaled) + power * t_rest;
  const float quotient = 1.0f / divisor;
  const float head = (quotient + C::grid) - C::grid;
  const float divisor_head = float_of_bits(bits_of_float(divisor) & C::head);
  const float divisor_tail = (divisor - divisor_head) + divisor_rest;
  const float remainder = (1.0f - head * divisor_head) - head * divisor_tail;
  return (1.0f - head) - remainder * quotient;
}

static inline float reference_tanh(float x) {
  using C = ReferenceTanhConstants;
  const std::uint32_t sign = bits_of_float(x) & kFloatSign;
  const float magnitude = float_of_bits(bits_of_float(x) & kFloatMagnitude);
  const float z = magnitude * magnitude;
  const float p = C::p1 * z + C::p0;
  const float near = magnitude + magnitude * (z * p);
  const float far = reference_tanh_far(magnitude);
  return float_of_bits(bits_of_float(magnitude < C::split ? near : far) | sign);
}

static inline float reference_erf(float x) {
  using C = ReferenceErfConstants;
  const std::uint32_t sign = bits_of_float(x) & kFloatSign;
  const float magnitude = float_of_bits(bits_of_float(x) & kFloatMagnitude);
  const float z = magnitude * magnitude;
  float p = C::p6;
  p = p * z + C::p5;
  p = p * z + C::p4;
  p = p * z + C::p3;
  p = p * z + C::p2;
  p = p * z + C::p1;
  p = p * z + C::p0;
  const float near = magnitude + magnitude * p;
  const float a = C::high < magnitude ? C::high : magnitude;
  float q = C::q6;
  q = q * a + C::q5;
  q = q * a + C::q4;
  q = q * a + C::q3;
  q = q * a + C::q2;
  q = q * a + C::q1;
  q = q * a + C::q0;
  const float far = 1.0f - reference_exp(q);
  return float_of_bits(bits_of_float(magnitude < C::split ? near : far) | sign);
}

static inline float reference_sqrt(float x) { return __builtin_sqrtf(x); }
static inline float reference_rsqrt(float x) { return 1.0f / reference_sqrt(x); }

// x * sigmoid(x), in the operations of its definition: -x, exp, 1 +, x /.
static inline float reference_silu(float x) { return x / (1.0f + reference_exp(-x)); }

// The row sum has kReferenceSumLanes strided partial sums, each from 0.0f in order of position, then a fixed tree.
inline constexpr int kReferenceSumLanes = 64;

// Sums partial[0 .. 63] in place; the result is partial[0]. For w = 32, 16, 8, 4, 2, 1: partial[j] += partial[j + w].
static inline float reference_sum_tree(float* partial) {
  for (int width = kReferenceSumLanes / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) partial[j] += partial[j + width];
  return partial[0];
}

static inline float reference_row_sum(const float* x, std::int64_t count) {
  float partial[kReferenceSumLanes] = {};
  std::int64_t i = 0;
  for (; i + kReferenceSumLanes <= count; i += kReferenceSumLanes)
    for (int j = 0; j < kReferenceSumLanes; ++j) partial[j] += x[i + j];
  for (int j = 0; i + j < count; ++j) partial[j] += x[i + j];
  return reference_sum_tree(partial);
}

}  // namespace weft
