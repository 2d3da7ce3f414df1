#pragma once

// What the ops of a row program compute, on one f32: the one statement of it, from which the vectors of generated code
// come (vector_math.h). The names are those of RowOp; + - * / and neg are themselves. Everything is `static inline` and
// has no loop, so that a compiler can vectorize a loop over lanes.
//
//   encode_<dtype>, decode_<dtype>   the code of a float in memory, as a cast gives it, and back

#include "tensor/bfloat16.h"
#include "tensor/float16.h"
#include "tensor/float4.h"
#include "tensor/float8.h"
#include "tensor/reference_math.h"

namespace weft {

static inline float row_maximum(float a, float b) { return a != a || a > b ? a : b; }
static inline float row_minimum(float a, float b) { return a != a || a < b ? a : b; }
// Of two numbers without a sign, or NaN, which wins: the order of their bit patterns. What maxima over rows and groups
// are made of.
static inline float row_larger(float a, float b) {
  const std::uint32_t x = bits_of_float(a), y = bits_of_float(b);
  return float_of_bits(x > y ? x : y);
}
static inline float row_at_least(float a, float b) { return a < b ? b : a; }
static inline float row_at_most(float a, float b) { return a > b ? b : a; }
static inline float row_abs(float a) { return __builtin_fabsf(a); }
static inline float row_exp(float a) { return reference_exp(a); }
static inline float row_tanh(float a) { return reference_tanh(a); }
static inline float row_erf(float a) { return reference_erf(a); }
static inline float row_sigmoid(float a) { return reference_sigmoid(a); }

// 1 + exp(-a): the bits of reference_exp's lines, in fewer steps. The signs of n and r are turned, which moves no
// rounding; below exp(-86) the power adds nothing to 1, so that 2^n needs no care for denormals; and half the power is
// a normal number up to 2^128.
static inline float row_silu_divisor(float a) {
  using C = ReferenceExpConstants;
  using S = ReferenceSiluConstants;
  a = a < S::low ? S::low : a;
  a = a > S::high ? S::high : a;
  const float shifted = a * C::inverse_ln2 + C::magic;
  const float n = shifted - C::magic;
  const float r = (a - n * C::ln2_high) - n * C::ln2_low;
  float p = C::p3 - r * C::p4;
  p = C::p2 - p * r;
  p = C::p1 - p * r;
  p = C::p0 - p * r;
  const float y = (r * r * p - r) + 1.0f;
  const std::uint32_t exponent = C::magic_bits + 126u - bits_of_float(shifted);
  const float half = y * float_of_bits(exponent << 23);
  return (half + half) + 1.0f;
}

// The polynomial C in f, times 2^n, where x * scale = n + f. The bits of x that are shifted into the power are 0 in a
// NaN of bf16, which stays one.
template <class C>
static inline float fused_power(float x, float scale) {
  constexpr float kMagic = ReferenceExpConstants::magic;
  const float shifted = __builtin_fmaf(x, scale, kMagic);
  const float f = __builtin_fmaf(x, scale, kMagic - shifted);
  float p = __builtin_fmaf(C::p4, f, C::p3);
  p = __builtin_fmaf(p, f, C::p2);
  p = __builtin_fmaf(p, f, C::p1);
  p = __builtin_fmaf(p, f, C::p0);
  return float_of_bits(bits_of_float(p) + (bits_of_float(shifted) << 23));
}

// The divisor for bf16 (Bf16SiluConstants), where the processor fuses products and sums.
static inline float row_bf16_silu_divisor(float a) {
#ifdef WEFT_FUSES_MULTIPLY_ADD
  a = a < ReferenceSiluConstants::low ? ReferenceSiluConstants::low : a;
  a = a > ReferenceSiluConstants::high ? ReferenceSiluConstants::high : a;
  const float half = fused_power<Bf16SiluConstants>(a, Bf16SiluConstants::turned);
  return __builtin_fmaf(half, 2.0f, 1.0f);
#else
  return row_silu_divisor(a);
#endif
}

// The sigmoid that is rounded to bf16, likewise (Bf16SigmoidConstants).
static inline float row_bf16_sigmoid(float a) {
#ifdef WEFT_FUSES_MULTIPLY_ADD
  using C = Bf16SigmoidConstants;
  float x = float_of_bits(bits_of_float(a) | kFloatSign);
  x = x < C::low ? C::low : x;
  const float power = fused_power<C>(x, ReferenceExpConstants::inverse_ln2) * C::unit;
  return (a >= 0.0f ? 1.0f : power) / (1.0f + power);
#else
  return row_sigmoid(a);
#endif
}

// a / b of a scale b in [2^-43, 2^126], or NaN, or the largest float for infinity, and c = 1 / b rounded: the bits of
// the division where |a / b| is in [2^-60, 2^60], its sign where it is less. Markstein: a quotient at most one last
// place away, and what its product with b leaves of a, which is exact, make the nearest one; the first quotient of an
// `a` of 11 bits is as near (all were tried; tests/codegen/simplify_rows_test.cpp tries many). What is left is taken
// with its sign turned, so that -0 stays.
static inline float nearer_quotient(float near, float a, float b, float c) {
  return __builtin_fmaf(-__builtin_fmaf(near, b, -a), c, near);
}
static inline float row_short_quotient(float a, float b, float c) {
#ifdef WEFT_FUSES_MULTIPLY_ADD
  return nearer_quotient(a * c, a, b, c);
#else
  return c == 0.0f ? a * c : a / b;
#endif
}
static inline float row_quotient(float a, float b, float c) {
#ifdef WEFT_FUSES_MULTIPLY_ADD
  return nearer_quotient(row_short_quotient(a, b, c), a, b, c);
#else
  return row_short_quotient(a, b, c);
#endif
}

// The same of an `a` of 8 bits, by c and what 1 / b is beyond c, but for the sign of 0 and the last place of two of the
// 2^30 quotients, which are in the middle of no codes: all were tried. The square of what is left of 1 is wanted, too.
static inline float row_inverse_rest(float b, float c) {
  const float left = __builtin_fmaf(-b, c, 1.0f);
  return __builtin_fmaf(left, left, left) * c;
}
static inline float row_shorter_quotient(float a, float rest, float c) { return __builtin_fmaf(a, c, a * rest); }

static inline float row_sqrt(float a) { return reference_sqrt(a); }

// The magnitude of the power of two at or before that of a finite number other than 0. A denormal counts its smallest
// parts, and as a number of them it is no denormal.
static inline std::uint32_t power_of_two_below(std::uint32_t magnitude) {
  const float parts = static_cast<float>(static_cast<std::int32_t>(magnitude & 0x7fffffu));
  const float power = float_of_bits(bits_of_float(parts) & kFloatInfinity);
  return magnitude > 0x7fffffu ? magnitude & kFloatInfinity
                               : static_cast<std::uint32_t>(static_cast<std::int32_t>(power));
}
static inline float with_power_of_two(float a, std::uint32_t power) {
  const std::uint32_t bits = bits_of_float(a), magnitude = bits & kFloatMagnitude;
  const bool stays = magnitude == 0u || magnitude >= kFloatInfinity;
  return float_of_bits(stays ? bits : (bits & kFloatSign) | power);
}
static inline float row_power_of_two_down(float a) {
  return with_power_of_two(a, power_of_two_below(bits_of_float(a) & kFloatMagnitude));
}
static inline float row_power_of_two_up(float a) {
  const std::uint32_t magnitude = bits_of_float(a) & kFloatMagnitude, below = power_of_two_below(magnitude);
  const std::uint32_t step = below > 0x7fffffu ? 0x800000u : below;
  return with_power_of_two(a, magnitude > below ? below + step : below);
}
static inline float row_round(float a) { return __builtin_nearbyintf(a); }
static inline float row_trunc(float a) { return __builtin_truncf(a); }
static inline float row_select_at_most(float a, float number, float b, float c) { return a <= number ? b : c; }
static inline float row_replace_nan(float a, float number) { return a != a ? number : a; }
static inline float row_replace_zero(float a, float number, float b) { return a == 0.0f ? number : b; }

static inline std::uint16_t encode_f16(float a) { return f32_to_f16(a); }
static inline std::uint16_t encode_bf16(float a) { return f32_to_bf16(a); }
// Of numbers, and NaN that are quiet and have nothing in their lower halves.
static inline std::uint16_t encode_plain_bf16(float a) {
  const std::uint32_t bits = bits_of_float(a);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
// The bf16 nearest to `a`, ties to even, where |a| is 0 or in [2^-126, 2^111): Veltkamp's splitting. Of less than
// 2^-126 it gives a number of the same sign that is at most 2^-126; from 2^112 on NaN, as of a NaN.
static inline float row_split_bf16(float a) {
  const float far = a * 65537.0f;
  return far - (far - a);
}
// The same in fewer steps but for the sign of 0: of a number m * 2^e, m < 2^24, m * 2^16 - m is rounded to a multiple
// of 2^16, of which m * 2^16 is one; or of 2^15 where m is below 2^23 + 2^7, and then there is nothing in the middle.
// Infinity or NaN from 2^113 on, as of NaN.
static inline float row_fused_bf16(float a) { return __builtin_fmaf(a, 65536.0f, -(a * 65535.0f)); }
// The bf16 nearest to `a` where that is not in the middle of two; infinite where it is nearer to 2^128. Of NaN that
// have nothing in their lower halves the same NaN; others may become numbers.
static inline float row_half_up_bf16(float a) { return float_of_bits((bits_of_float(a) + 0x8000u) & 0xffff0000u); }
static inline std::uint8_t encode_f8e4m3(float a) { return f32_to_f8e4m3(a); }
static inline std::uint8_t encode_f8e4m3fnuz(float a) { return f32_to_f8e4m3fnuz(a); }
static inline std::uint8_t encode_f8e5m2(float a) { return f32_to_f8e5m2(a); }
// Words whose low bytes are codes; anything may be above. As f32_to_f4e2m1 makes them, in fewer steps; of a number in
// [0, 6].
static inline std::uint32_t ordinary_f4e2m1(float magnitude) {
  constexpr std::uint32_t kOne = 0x3f800000u;
  constexpr float kPlaces = 0x1.8p+22f + 1.0f;
  const std::uint32_t exponent = bits_of_float(magnitude) & kFloatInfinity, power = exponent > kOne ? exponent : kOne;
#ifdef WEFT_FUSES_MULTIPLY_ADD
  const float sum = __builtin_fmaf(float_of_bits(power), kPlaces, magnitude);
#else
  const float sum = float_of_bits(power) * kPlaces + magnitude;
#endif
  return bits_of_float(sum) + (power >> 22);
}
static inline std::uint32_t f4e2m1_of_magnitude(std::uint32_t magnitude) {
  constexpr std::uint32_t kSix = 0x40c00000u;
  return ordinary_f4e2m1(float_of_bits(magnitude < kSix ? magnitude : kSix));
}
// NaN that have a sign are the last patterns, after infinity.
static inline std::uint32_t word_of_f4e2m1(float a) {
  const auto bits = static_cast<std::int32_t>(bits_of_float(a));
  constexpr auto kNegativeInfinity = static_cast<std::int32_t>(kFloatSign | kFloatInfinity);
  return f4e2m1_of_magnitude(bits_of_float(a) & kFloatMagnitude) | (bits <= kNegativeInfinity ? 0x8u : 0u);
}
static inline std::uint8_t encode_f4e2m1(float a) { return static_cast<std::uint8_t>(word_of_f4e2m1(a)); }
// Of -0 the code of 0; NaN are to be quiet.
static inline std::uint32_t plain_word_of_f4e2m1(float a) {
  return f4e2m1_of_magnitude(bits_of_float(a) & kFloatMagnitude) | (a < 0.0f ? 0x8u : 0u);
}
static inline std::uint8_t encode_plain_f4e2m1(float a) { return static_cast<std::uint8_t>(plain_word_of_f4e2m1(a)); }
// The low 16 bits are the code of a number in [0, 464), of 480 that of NaN. The sum with 1.5 * 2^20 times the power of
// two below it, or with 1.5 * 2^14 below 2^-6, has the multiple of the code's last place in its low bits, and next to
// it -968, as the biases of both exponents want it modulo 2^16; the exponent comes from the power. The kernels' way is
// like it (kernels/cpu/lib/quantize_fp8.h).
constexpr float kPlacesOfF8e4m3 = 0x1.7ff87p+20f;
static inline std::uint32_t power_of_f8e4m3(float magnitude) {
  constexpr std::uint32_t kLeast = 0x3c800000u;  // 2^-6
  const std::uint32_t exponent = bits_of_float(magnitude) & kFloatInfinity;
  return exponent > kLeast ? exponent : kLeast;
}
static inline float sum_of_f8e4m3(float magnitude, std::uint32_t power) {
#ifdef WEFT_FUSES_MULTIPLY_ADD
  return __builtin_fmaf(float_of_bits(power), kPlacesOfF8e4m3, magnitude);
#else
  return float_of_bits(power) * kPlacesOfF8e4m3 + magnitude;
#endif
}
static inline std::uint32_t ordinary_f8e4m3(float magnitude) {
  const std::uint32_t power = power_of_f8e4m3(magnitude);
  return bits_of_float(sum_of_f8e4m3(magnitude, power)) + (power >> 20);
}
// The value of such a code: all are multiples of the sum's last place.
static inline float rounded_ordinary_f8e4m3(float magnitude) {
  const std::uint32_t power = power_of_f8e4m3(magnitude);
  return sum_of_f8e4m3(magnitude, power) - float_of_bits(power) * kPlacesOfF8e4m3;
}
static inline float held_to_480(float a) {
  constexpr std::uint32_t k480 = 0x43f00000u;
  const std::uint32_t magnitude = bits_of_float(a) & kFloatMagnitude;
  return float_of_bits(magnitude < k480 ? magnitude : k480);
}
// Of |a| below 464 or a quiet NaN, whose bits are those of larger numbers.
static inline std::uint8_t encode_plain_f8e4m3(float a) {
  return static_cast<std::uint8_t>(ordinary_f8e4m3(held_to_480(a)) | (bits_of_float(a) >> 24 & 0x80u));
}
// The float that the code is of.
static inline float rounded_f8e4m3_of_held(float a, float held) {
  constexpr std::uint32_t kNan = 0x7fc00000u;
  const std::uint32_t magnitude = a == a ? bits_of_float(rounded_ordinary_f8e4m3(held)) : kNan;
  return float_of_bits(magnitude | (bits_of_float(a) & kFloatSign));
}
static inline float row_rounded_f8e4m3(float a) { return rounded_f8e4m3_of_held(a, held_to_480(a)); }
static inline float decode_f16(std::uint16_t code) { return f16_to_f32(code); }
static inline float decode_bf16(std::uint16_t code) { return bf16_to_f32(code); }
static inline float decode_f8e4m3(std::uint8_t code) { return f8e4m3_to_f32(code); }
static inline float decode_f8e4m3fnuz(std::uint8_t code) { return f8e4m3fnuz_to_f32(code); }
static inline float decode_f8e5m2(std::uint8_t code) { return f8e5m2_to_f32(code); }
static inline float decode_f4e2m1(std::uint8_t code) { return f4e2m1_to_f32(code); }

// Toward zero; what does not fit becomes the nearest that does, NaN becomes 0.
static inline std::int32_t whole_between(float a, float low, float high) {
  a = a != a ? 0.0f : a;
  a = a < low ? low : a;
  a = a > high ? high : a;
  return static_cast<std::int32_t>(a);
}
static inline std::uint8_t encode_i8(float a) { return static_cast<std::uint8_t>(whole_between(a, -128.0f, 127.0f)); }
// Of a in (-128.5, 127.5) or NaN: what encode_i8(row_round(a)) gives.
static inline std::uint8_t encode_plain_i8(float a) {
  return a != a ? std::uint8_t{0} : static_cast<std::uint8_t>(static_cast<std::int32_t>(row_round(a)));
}
static inline std::uint8_t encode_u8(float a) { return static_cast<std::uint8_t>(whole_between(a, 0.0f, 255.0f)); }
static inline float decode_i8(std::uint8_t code) { return static_cast<float>(static_cast<std::int8_t>(code)); }
static inline float decode_u8(std::uint8_t code) { return static_cast<float>(code); }

}  // namespace weft

// X(dtype, type of its code) for each dtype that a row program reads and writes besides f32.
#define WEFT_ROW_CODES(X)     \
  X(f16, std::uint16_t)       \
  X(bf16, std::uint16_t)      \
  X(i8, std::uint8_t)         \
  X(u8, std::uint8_t)         \
  X(f8e4m3, std::uint8_t)     \
  X(f8e4m3fnuz, std::uint8_t) \
  X(f8e5m2, std::uint8_t)     \
  X(f4e2m1, std::uint8_t)

// X(op) for the functions above by the number of floats they take.
#define WEFT_ROW_UNARY(X) \
  X(abs)                  \
  X(exp)                  \
  X(tanh)                 \
  X(erf)                  \
  X(sigmoid)              \
  X(silu_divisor) X(bf16_silu_divisor) X(bf16_sigmoid) X(sqrt) X(power_of_two_up) X(power_of_two_down) X(round) X(trunc)
#define WEFT_ROW_BINARY(X) X(maximum) X(minimum) X(larger) X(at_least) X(at_most) X(replace_nan)
#define WEFT_ROW_TERNARY(X) X(quotient) X(short_quotient)
