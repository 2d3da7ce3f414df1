#pragma once

// The reference math (tensor/reference_math.h) for vectors, line by line: the same bits in every lane, on every
// instruction set. WEFT_FLOAT_VECTORS: see float_vector_operations.h.

#include "kernels/cpu/lib/float_vector_operations.h"
#include "tensor/reference_math.h"

namespace weft::cpu {
namespace {

// The expressions `low > x ? low : x` and `high < x ? high : x`, which return a NaN unchanged.
inline Floats at_least(Floats x, float low) { return larger(fill(low), x); }
inline Floats at_most(Floats x, float high) { return smaller(fill(high), x); }

inline Floats vector_exp(Floats x) {
  using C = ReferenceExpConstants;
  x = at_least(x, C::low);
  x = at_most(x, C::high);
  const Floats shifted = x * C::inverse_ln2 + C::magic;
  const Floats n = shifted - C::magic;
  const Floats r = (x - n * C::ln2_high) - n * C::ln2_low;
  Floats p = fill(C::p4);
  p = p * r + C::p3;
  p = p * r + C::p2;
  p = p * r + C::p1;
  p = p * r + C::p0;
  const Floats y = (r * r * p + r) + 1.0f;
  const Integers whole = bits_of(shifted) - static_cast<std::int32_t>(C::magic_bits);
  const Integers half = whole >> 1;
  const Floats first = floats_of((half + 127) << 23);
  const Floats second = floats_of((whole - half + 127) << 23);
  return (y * first) * second;
}

inline Floats with_sign(Floats magnitude, Integers sign) { return floats_of(bits_of(magnitude) | sign); }
inline Integers sign_of(Floats x) { return bits_of(x) & INT32_MIN; }

inline Floats vector_tanh_far(Floats x) {
  using C = ReferenceTanhConstants;
  using E = ReferenceExpConstants;
  x = fill(C::one_from) < x ? fill(C::far_end) : x;
  const Floats twice = x + x;
  const Floats shifted = twice * E::inverse_ln2 + E::magic;
  const Floats n = shifted - E::magic;
  const Floats reduced = twice - n * E::ln2_high;
  const Floats low = n * E::ln2_low;
  const Floats r = reduced - low;
  Floats p = fill(E::p4);
  p = p * r + E::p3;
  p = p * r + E::p2;
  p = p * r + E::p1;
  p = p * r + E::p0;
  const Floats rise = r * r * p - low;
  const Floats t = reduced + rise;
  const Floats t_rest = (reduced - t) + rise;
  const Floats power = floats_of(wrapping_sum(bits_of(shifted) << 23, Integers{} + 0x3f000000));
  const Floats base = power + 0.5f;
  const Floats scaled = power * t;
  const Floats divisor = base + scaled;
  const Floats divisor_rest = ((base - divisor) + scaled) + power * t_rest;
  const Floats quotient = 1.0f / divisor;
  const Floats head = (quotient + C::grid) - C::grid;
  const Floats divisor_head = floats_of(bits_of(divisor) & static_cast<std::int32_t>(C::head));
  const Floats divisor_tail = (divisor - divisor_head) + divisor_rest;
  const Floats remainder = (1.0f - head * divisor_head) - head * divisor_tail;
  return (1.0f - head) - remainder * quotient;
}

inline Floats vector_tanh(Floats x) {
  using C = ReferenceTanhConstants;
  const Floats magnitude = absolute(x);
  const Floats z = x * x;
  const Floats p = C::p1 * z + C::p0;
  const Floats near = x + x * (z * p);
  const Floats far = vector_tanh_far(magnitude);
  return magnitude < C::split ? near : with_sign(far, sign_of(x));
}

inline Floats vector_erf(Floats x) {
  using C = ReferenceErfConstants;
  const Floats magnitude = absolute(x);
  const Floats z = x * x;
  Floats p = fill(C::p6);
  p = p * z + C::p5;
  p = p * z + C::p4;
  p = p * z + C::p3;
  p = p * z + C::p2;
  p = p * z + C::p1;
  p = p * z + C::p0;
  const Floats near = x + x * p;
  const Floats a = at_most(magnitude, C::high);
  Floats q = fill(C::q6);
  q = q * a + C::q5;
  q = q * a + C::q4;
  q = q * a + C::q3;
  q = q * a + C::q2;
  q = q * a + C::q1;
  q = q * a + C::q0;
  const Floats far = 1.0f - vector_exp(q);
  return magnitude < C::split ? near : with_sign(far, sign_of(x));
}

// a * b + c, rounded once: the product of two floats is exact as a double.
inline Floats once_rounded_sum(Floats a, float b, Floats c) {
  using Doubles = double __attribute__((vector_size(8 * kLanes)));
  const Doubles sum = __builtin_convertvector(c, Doubles) + __builtin_convertvector(a, Doubles) * double{b};
  return __builtin_convertvector(sum, Floats);
}

// 1 + exp(-x), the divisor of silu. It has the bits of reference_exp in fewer steps. The signs of n and r are reversed,
// which changes no rounding. Below exp(-86) the power adds nothing to 1, so 2^n needs no special case for denormals.
// Half the power is a normal number up to 2^128.
inline Floats vector_silu_divisor(Floats x) {
  using C = ReferenceExpConstants;
  x = at_most(at_least(x, ReferenceSiluConstants::low), ReferenceSiluConstants::high);
  const Floats shifted = x * C::inverse_ln2 + C::magic;
  const Floats n = shifted - C::magic;
  const Floats r = (x - n * C::ln2_high) - n * C::ln2_low;
  Floats p = C::p3 - r * C::p4;
  p = C::p2 - p * r;
  p = C::p1 - p * r;
  p = C::p0 - p * r;
  const Floats y = (r * r * p - r) + 1.0f;
  const Words exponent = (Words{} + (C::magic_bits + 126u)) - reinterpret_cast<Words>(bits_of(shifted));
  const Floats half = y * floats_of(reinterpret_cast<Integers>(exponent << 23));
  return (half + half) + 1.0f;
}

// The divisor for bf16 x only, with half the operations (tests/kernels/cpu_quantized_rows_test.cpp tests all x). x must
// be within the limits, where half the power is a normal number.
inline Floats bfloat_silu_divisor(Floats x) {
  using C = Bf16SiluConstants;
  constexpr float kMagic = ReferenceExpConstants::magic;
  const Floats turned = fill(C::turned);
  const Floats shifted = multiply_add(x, turned, fill(kMagic));
  const Floats f = multiply_add(x, turned, kMagic - shifted);
  Floats p = multiply_add(fill(C::p4), f, fill(C::p3));
  p = multiply_add(p, f, fill(C::p2));
  p = multiply_add(p, f, fill(C::p1));
  p = multiply_add(p, f, fill(C::p0));
  return multiply_add(floats_of(wrapping_sum(bits_of(p), bits_of(shifted) << 23)), fill(2.0f), fill(1.0f));
}
// Limits pairs of bf16. As integers, negative bf16 are larger if their magnitudes are larger.
inline Integers silu_operands(Integers pairs) {
  constexpr std::int32_t kLargest = 0x42ac42ac, kLeast = static_cast<std::int32_t>(0xc2b2c2b2);
  return smaller_unsigned_words(smaller_words(pairs, Integers{} + kLargest), Integers{} + kLeast);
}
// Limits x, which may replace a NaN by a number. This is allowed because x itself also determines the result wherever
// the limit matters.
template <class Lanes>
inline Floats load_silu_operand(const Brain* x, Lanes lanes) {
  return at_most(at_least(load(x, lanes), ReferenceSiluConstants::low), ReferenceSiluConstants::high);
}
inline Floats load_silu_operand(const Brain* x, EvenLanes) { return even_of(silu_operands(load_bits(x))); }
inline Floats load_silu_operand(const Brain* x, OddLanes) { return odd_of(silu_operands(load_bits(x - kLanes))); }

// The row sum of the reference math over term(column, lanes), which must be 0 in lanes after the end of the row. Adding
// that 0 changes no bit: a partial sum that begins with 0.0f is never -0.0f.
template <class Term>
inline float vector_row_sum(std::int64_t columns, Term term) {
  constexpr int kVectors = kReferenceSumLanes / kLanes;
  Floats partial[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) partial[v] = Floats{};
  std::int64_t column = 0;
  for (; column + kReferenceSumLanes <= columns; column += kReferenceSumLanes) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) partial[v] = partial[v] + term(column + v * kLanes, AllLanes{});
  }
  const int rest = static_cast<int>(columns - column);
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const int count = rest - v * kLanes;
    if (count >= kLanes) {
      partial[v] = partial[v] + term(column + v * kLanes, AllLanes{});
    } else if (count > 0) {
      partial[v] = partial[v] + term(column + v * kLanes, FirstLanes{count});
    }
  }
#pragma GCC unroll 4
  for (int width = kVectors / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
    for (int v = 0; v < width; ++v) partial[v] = partial[v] + partial[v + width];
  }
  float lanes[kLanes];
  store(lanes, partial[0]);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

}  // namespace
}  // namespace weft::cpu
