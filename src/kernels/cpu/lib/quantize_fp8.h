#pragma once

// Computes codes of f8e4m3 and f8e4m3fnuz and their scales, for one instruction set (WEFT_FLOAT_VECTORS: see
// float_vector_operations.h), with the bits of the quantizing ops' meanings.

#include <cstdint>

#include "kernels/cpu/lib/quantize_codes.h"

namespace weft::cpu {
namespace {

// Computes f8e4m3fnuz: up to 224, the code of x is the f8e4m3 code of 2 * x, which is exact. But there is no -0, and a
// NaN has the code that -0 would have.
template <class Scaled>
struct Doubled {
  explicit Doubled(const Scaled& of) : scaled(of) {}
  Floats operator()(Floats x) const {
    const Floats result = scaled(x);
    return result + result;
  }
  static Floats sign_of_scaled(Floats x, Floats result) { return Scaled::sign_of_scaled(x, result); }
  Scaled scaled;
};
template <class Scaled>
using AsItIs = Scaled;

// A result limited to [-448, 448]. It is never NaN if the factor and the values are numbers.
template <class Scaled>
struct Held {
  explicit Held(const Scaled& of) : scaled(of) {}
  Floats operator()(Floats x) const { return at_most(at_least(scaled(x), -448.0f), 448.0f); }
  static Floats sign_of_scaled(Floats x, Floats result) { return Scaled::sign_of_scaled(x, result); }
  Scaled scaled;
};

template <class Scaled>
constexpr bool kIsFnuz = false;
template <class Scaled>
constexpr bool kIsFnuz<Doubled<Scaled>> = true;
template <class Scaled>
constexpr bool kIsFnuz<Held<Scaled>> = kIsFnuz<Scaled>;

template <class F, class Scaled>
inline void store_fp8_together(std::int8_t* codes, const typename F::Element* x, const Scaled& scaled) {
  Integers code[kVectorsTogether];
  Floats sign[kVectorsTogether];
#pragma GCC unroll 8
  for (int v = 0; v < kVectorsTogether; ++v) {
    const Floats value = load(x + v * kLanes), result = scaled(value);
    code[v] = biased_fp8_codes(result);
    sign[v] = Scaled::sign_of_scaled(value, result);
    if constexpr (kIsFnuz<Scaled>) sign[v] = floats_of(bits_of(sign[v]) & (code[v] != kFp8Bias));
  }
  F::kPaired ? store_signed_byte_pairs(codes, code, kFp8Bias, sign) : store_signed_bytes(codes, code, kFp8Bias, sign);
}

template <class F, class Scaled>
inline void store_fp8(std::int8_t* codes, const typename F::Element* x, std::int64_t columns, const Scaled& scaled) {
  for_each_vector(columns, [&](std::int64_t column, auto lanes) {
    const Floats value = load_in_order<F>(x, column, lanes), result = scaled(value);
    // The product of two NaN may be either of them. Here it must be the value's.
    const Floats held = value == value ? at_most(at_least(result, -448.0f), 448.0f) : value;
    store_bytes(codes + column, fp8_codes<kIsFnuz<Scaled>>(held), lanes);
  });
}

// The power of two at or above x >= 0; 0, infinity and NaN are returned unchanged.
inline Floats power_of_two_above(Floats x) {
  const Integers bits = bits_of(x);
  const Integers normal = wrapping_sum(bits, Integers{} + 0x7fffff) & 0x7f800000;
  // The bits of a denormal are its multiple of the smallest denormal.
  const Floats parts = __builtin_convertvector(bits & 0x7fffff, Floats);
  const Integers small = integers_of(floats_of((bits_of(parts) + 0x7fffff) & 0x7f800000));
  const Integers power = bits > 0x7fffff ? normal : small;
  return floats_of((bits == 0) | (bits >= 0x7f800000) ? bits : power);
}

// A NaN is returned unchanged, as by clamp, minimum and div_scalar in the ops' meanings.
inline Floats held_to_bound(Floats x, float bound) { return (x < bound) | (x != x) ? x : fill(bound); }
inline Floats fp8_scale(Floats magnitude, const QuantTask& task) {
  magnitude = at_least(magnitude, task.least);
  if (task.bounded == Bounded::magnitude) magnitude = held_to_bound(magnitude, task.bound);
  const float largest = task.fnuz ? 224.0f : 448.0f, inverse = static_cast<float>(task.fnuz ? 1.0 / 224 : 1.0 / 448);
  Floats scale = task.scale_by_reciprocal ? magnitude * inverse : magnitude / largest;
  if (task.bounded == Bounded::scale) scale = held_to_bound(scale, task.bound);
  if (task.power_of_two) scale = power_of_two_above(at_least(scale, task.least_power));
  return at_least(scale, task.least_scale);
}

template <class F, class Fast, class Slow>
inline void store_fp8_group(std::int8_t* codes, const typename F::Element* x, std::int64_t columns, bool fast,
                            const Fast& fast_scaled, const Slow& scaled) {
  if (!fast) return store_fp8<F>(codes, x, columns, scaled);
  for_each_together(
      columns, [&](std::int64_t at) { store_fp8_together<F>(codes + at, x + at, fast_scaled); },
      [&](std::int64_t at) { store_fp8<F>(codes + at, x + at, columns - at, scaled); });
}

// If the scale is computed from the largest magnitude, scaled values are at most 448 plus a few last bits, and need no
// clamp. A bound may make the scale smaller, so that they do. `Of` is Doubled for f8e4m3fnuz.
template <class F, template <class> class Of>
inline void quantize_fp8_groups_of(const QuantTask& task, const Part<F>& part) {
  using Fast = Of<QuotientOf<F>>;
  GroupScales scales;
  const std::int64_t group = task.group, count = (part.columns + group - 1) / group;
  largest_magnitudes(scales.scale, part.x, part.columns, group);
  const bool fast = scales_of<F::kShort>(scales, count, [&](Floats magnitude) { return fp8_scale(magnitude, task); }) &&
                    task.bounded == Bounded::nothing;
  give_scales(task, part.row, part.group, scales.scale, count);
  if (fast && group == kTogether && part.columns % kTogether == 0 && !task.codes_by_reciprocal) {
    for (std::int64_t i = 0; i < count; ++i)
      store_fp8_together<F>(part.codes + i * kTogether, part.x + i * kTogether, Fast(QuotientOf<F>(scales, i)));
    return;
  }
  for_each_group(part.columns, group, [&](std::int64_t number, std::int64_t first, std::int64_t columns) {
    const auto* x = part.x + first;
    std::int8_t* codes = part.codes + first;
    if (task.codes_by_reciprocal) {
      const Of<Product> scaled(Product(1.0f / scales.scale[number]));
      store_fp8_group<F>(codes, x, columns, fast, scaled, scaled);
    } else {
      const Of<Quotient<false>> divided(Quotient<false>(scales, number));
      store_fp8_group<F>(codes, x, columns, fast, Fast(QuotientOf<F>(scales, number)), divided);
    }
  });
}
template <class F>
inline void quantize_fp8_groups(const QuantTask& task, const Part<F>& part) {
  task.fnuz ? quantize_fp8_groups_of<F, Doubled>(task, part) : quantize_fp8_groups_of<F, AsItIs>(task, part);
}

template <class F, template <class> class Of>
inline void quantize_fp8_given_of(const QuantTask& task, const Part<F>& part) {
  const float* given = task.given + (task.first_row + part.row) / task.given_rows * task.given_stride;
  for_each_group(part.columns, task.group, [&](std::int64_t number, std::int64_t first, std::int64_t columns) {
    const auto* x = part.x + first;
    std::int8_t* codes = part.codes + first;
    const float inverse = 1.0f / given[(part.group + number) * task.given_step];
    const bool finite = largest_magnitude(x, columns) < __builtin_inff() && inverse - inverse == 0;
    const Of<Product> scaled(Product{inverse});
    store_fp8_group<F>(codes, x, columns, finite, Held<Of<Product>>(scaled), scaled);
  });
}
template <class F>
inline void quantize_fp8_given(const QuantTask& task, const Part<F>& part) {
  task.fnuz ? quantize_fp8_given_of<F, Doubled>(task, part) : quantize_fp8_given_of<F, AsItIs>(task, part);
}

}  // namespace
}  // namespace weft::cpu
