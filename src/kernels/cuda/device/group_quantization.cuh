#pragma once

// Computes the scale and codes of a group whose values are spread over neighbouring lanes. The bits are those of the
// quantizing ops: NaN stays NaN throughout and makes the scale NaN.

#include "kernels/cuda/device/codes.cuh"
#include "kernels/cuda/device/memory.cuh"

namespace weft::cuda {

// For quotients by a product and one correction step: the scale is so far from 0 and infinity that neither the
// reciprocal nor a remainder loses bits.
constexpr float kLeastOrdinary = 0x1p-60f, kLargestOrdinary = 0x1p60f;

// x / divisor, if both are ordinary and `inverse` is the float nearest to 1 / divisor (Markstein 1990). The
// remainder is taken of q * divisor - x: only so does -0 stay -0.
WEFT_DEVICE float corrected_quotient(float x, float divisor, float inverse) {
  const float q = x * inverse;
  return multiply_add(multiply_add(q, divisor, -x), -inverse, q);
}

template <class Code>
WEFT_DEVICE float divided_by_limit(float x) {
  if (x >= kLeastOrdinary && x <= kLargestOrdinary) return corrected_quotient(x, Code::kLimit, Code::kInverseLimit);
  return divide(x, Code::kLimit);
}

// Infinity if there is no bound.
WEFT_DEVICE float bound_of(const GroupRule& rule) {
  return rule.bound == nullptr ? float_of(0x7f800000u) : load(rule.bound);
}

// The scale of a group with this largest magnitude.
template <class Code>
WEFT_DEVICE float scale_of(float largest, const GroupRule& rule, float bound) {
  largest = larger(largest, rule.least_magnitude);
  if (rule.bounds_magnitude) largest = smaller(largest, bound);
  float scale = rule.by_reciprocal ? largest * Code::kInverseLimit : divided_by_limit<Code>(largest);
  if (!rule.bounds_magnitude) scale = smaller(scale, bound);
  if (rule.power_of_two) scale = power_of_two_above(larger(scale, rule.least_power));
  return larger(scale, rule.least_scale);
}

// The largest magnitude among `lanes` neighbours, each of which has `count` values.
template <int lanes, int count>
WEFT_DEVICE float largest_of_lanes(const float* values WEFT_SITE) {
  float largest = magnitude(values[0]);
  WEFT_UNROLL
  for (int i = 1; i < count; ++i) largest = larger(largest, magnitude(values[i]));
  WEFT_UNROLL
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    largest = larger(largest, exchange(largest, static_cast<unsigned>(distance) WEFT_PASS_SITE));
  return largest;
}

// The codes of values / scale, four to a word. `largest` is the largest magnitude among them.
template <class Code, int count>
WEFT_DEVICE void quantize(float* values, float largest, float scale, std::uint32_t* words) {
  const float inverse = ordinary_reciprocal(scale);
  const bool is_ordinary = scale >= kLeastOrdinary && scale <= kLargestOrdinary && largest * inverse < Code::kSafe;
  if (is_ordinary) {
    WEFT_UNROLL
    for (int i = 0; i < count; ++i) values[i] = corrected_quotient(values[i], scale, inverse);
    WEFT_UNROLL
    for (int i = 0; i < count / 4; ++i) words[i] = Code::pack(values + 4 * i, true);
  } else {
    WEFT_UNROLL
    for (int i = 0; i < count; ++i) values[i] = divide(values[i], scale);
    WEFT_UNROLL
    for (int i = 0; i < count / 4; ++i) words[i] = Code::pack(values + 4 * i, false);
  }
}

// The codes of values * inverse, which may be any numbers, four to a word.
template <class Code, int count>
WEFT_DEVICE void quantize_by_product(float* values, float inverse, std::uint32_t* words) {
  WEFT_UNROLL
  for (int i = 0; i < count; ++i) values[i] = values[i] * inverse;
  WEFT_UNROLL
  for (int i = 0; i < count / 4; ++i) words[i] = Code::pack(values + 4 * i, false);
}

// Codes of f8e4m3 with a given scale, computed as the product with its reciprocal.
template <int count>
WEFT_DEVICE void quantize_by_given_scale(float* values, const float* scale, std::uint32_t* words) {
  quantize_by_product<Fp8, count>(values, divide(1.0f, load(scale)), words);
}

}  // namespace weft::cuda
