#pragma once

// Computes codes and scales of values, for one instruction set (WEFT_FLOAT_VECTORS: see float_vector_operations.h),
// with the bits of the quantizing ops' meanings: the common part of all of them, and int8.

#include <cstdint>

#include "kernels/cpu/lib/quantized_rows_kernels.h"
#include "kernels/cpu/lib/reference_vector.h"

namespace weft::cpu {
namespace {

// The form of the values that are quantized: elements in memory. `short_values` have at most 11 significant bits. If
// `paired`, two vectors hold the even and the odd ones of 2 * kLanes columns; groups are then multiples of kTogether.
template <class T, bool short_values, bool paired>
struct Form {
  using Element = T;
  static constexpr bool kShort = short_values;
  static constexpr bool kPaired = paired;
};
template <class T>
using PlainForm = Form<T, sizeof(T) == 2, false>;

// Columns whose codes are computed together: whole vectors, and whole pairs of them, on every instruction set.
constexpr std::int64_t kTogether = 32;
constexpr int kVectorsTogether = kTogether / kLanes;

inline void store_bytes(std::int8_t* to, Integers x, AllLanes) { store_bytes(to, x); }
inline void store_bytes(std::int8_t* to, Integers x, FirstLanes lanes) {
  std::int8_t buffer[kLanes];
  store_bytes(buffer, x);
  std::memcpy(to, buffer, static_cast<unsigned>(lanes.count));
}

// Compares magnitudes as integers. The bits of a NaN are above those of infinity, so a NaN is the largest.
inline Integers larger_magnitude(Integers largest, Floats x) {
  const Integers bits = bits_of(absolute(x));
  return bits > largest ? bits : largest;
}

// For the bits of floats that are not negative.
template <class Bits>
inline float largest_lane(Bits x) {
#pragma GCC unroll 4
  for (int width = kLanes / 2; width > 0; width /= 2) {
    const Bits moved = __builtin_shuffle(x, lane_numbers() ^ width);
    x = moved > x ? moved : x;
  }
  return float_of_bits(static_cast<std::uint32_t>(x[0]));
}

// The largest magnitude of a group.
template <class T>
inline float largest_magnitude(const T* x, std::int64_t columns) {
  Integers largest = {};
  std::int64_t first = 0;
  for (; first + kTogether <= columns; first += kTogether) {
#pragma GCC unroll 8
    for (int v = 0; v < kTogether; v += kLanes) largest = larger_magnitude(largest, load(x + first + v));
  }
  for_each_vector(columns - first, [&](std::int64_t column, auto lanes) {
    largest = larger_magnitude(largest, load(x + first + column, lanes));
  });
  return largest_lane(largest);
}
// The same, ignoring NaN.
template <class T>
inline float largest_magnitude_of_numbers(const T* x, std::int64_t columns) {
  Floats largest = {};
  for_each_vector(
      columns, [&](std::int64_t column, auto lanes) { largest = larger(absolute(load(x + column, lanes)), largest); });
  return largest_lane(bits_of(largest));
}

// Calls body(index, first, columns) for each group of `columns`; the last may be short.
template <class Body>
inline void for_each_group(std::int64_t columns, std::int64_t group, Body body) {
  std::int64_t number = 0, first = 0;
  for (; first + group <= columns; first += group) body(number++, first, group);
  if (first < columns) body(number, first, columns - first);
}

template <class T>
inline void largest_magnitudes(float* magnitudes, const T* x, std::int64_t columns, std::int64_t group) {
  if (group == kTogether && columns % kTogether == 0) {
    for (std::int64_t i = 0; i < columns / kTogether; ++i)
      magnitudes[i] = largest_magnitude(x + i * kTogether, kTogether);
  } else {
    for_each_group(columns, group, [&](std::int64_t number, std::int64_t first, std::int64_t count) {
      magnitudes[number] = largest_magnitude(x + first, count);
    });
  }
}

inline bool every_lane(Integers truth) {
  bool all = true;
  for (int i = 0; i < kLanes; ++i) all &= truth[i] != 0;
  return all;
}

// Computes x / scale for an ordinary scale; sign_of_scaled returns a value with the result's sign. Short values are
// multiplied by the reciprocal in two parts, which is less work. For each 11-bit significand and each 24-bit
// significand except the largest, the product equals the quotient, or differs from it in the last bit if neither has 10
// bits or fewer. So no limit between two codes is between them. Parts underflow only for products far below all codes
// except 0.
constexpr float kLeastOrdinary = 0x1p-64f, kLargestOrdinary = 0x1p64f;
template <bool short_values>
inline Integers is_ordinary(Floats scale, float least) {
  const Integers inside = (scale >= least) & (scale <= kLargestOrdinary);
  return short_values ? inside & ((bits_of(scale) & 0x7fffff) != 0x7fffff) : inside;
}
// The scales of the groups of a block. The inverses are used for short values only.
struct GroupScales {
  float scale[kBlockColumns];
  float inverse[kBlockColumns];
  float inverse_rest[kBlockColumns];
};
template <bool short_values>
struct Quotient {
  Quotient(const GroupScales& scales, std::int64_t group) : divisor(fill(scales.scale[group])) {}
  Floats operator()(Floats x) const { return x / divisor; }
  static Floats sign_of_scaled(Floats, Floats quotient) { return quotient; }
  Floats divisor;
};
template <>
struct Quotient<true> {
  Quotient(const GroupScales& scales, std::int64_t group)
      : first(fill(scales.inverse[group])), rest(fill(scales.inverse_rest[group])) {}
  Floats operator()(Floats x) const { return multiply_add(x, first, x * rest); }
  // The quotient's sign may be lost, since the sum of -0 and 0 is 0.
  static Floats sign_of_scaled(Floats x, Floats) { return x; }
  Floats first, rest;
};
template <class F>
using QuotientOf = Quotient<F::kShort && kFusesMultiplyAdd>;
struct Product {
  explicit Product(float inverse) : factor(fill(inverse)) {}
  Floats operator()(Floats x) const { return x * factor; }
  static Floats sign_of_scaled(Floats, Floats product) { return product; }
  Floats factor;
};

// Replaces the magnitudes in `scales` by scales. Returns whether all are ordinary and at least `least`.
template <bool short_values, class ScaleOf>
inline bool scales_of(GroupScales& scales, std::int64_t count, ScaleOf scale_of, float least = kLeastOrdinary) {
  Integers ordinary = Integers{} - 1;
  for_each_vector(count, [&](std::int64_t group, auto lanes) {
    const Floats scale = scale_of(load(scales.scale + group, lanes));
    store(scales.scale + group, scale, lanes);
    if constexpr (short_values && kFusesMultiplyAdd) {
      const Floats inverse = 1.0f / scale;
      store(scales.inverse + group, inverse, lanes);
      store(scales.inverse_rest + group, multiply_add(-inverse, scale, fill(1.0f)) * inverse, lanes);
    }
    if constexpr (__is_same(decltype(lanes), AllLanes)) {
      ordinary &= is_ordinary<short_values>(scale, least);
    } else {
      ordinary &= is_ordinary<short_values>(scale, least) | (lane_numbers() >= lanes.count);
    }
  });
  return every_lane(ordinary);
}

// Stores int8 codes of kTogether values that are numbers in (-129, 128) after scaling.
template <class F, class Scaled>
inline void store_int8_together(std::int8_t* codes, const typename F::Element* x, const Scaled& scaled,
                                bool toward_zero) {
  Floats code[kVectorsTogether];
#pragma GCC unroll 8
  for (int v = 0; v < kVectorsTogether; ++v) {
    const Floats value = scaled(load(x + v * kLanes));
    code[v] = toward_zero ? truncated(value) : value;
  }
  F::kPaired ? store_nearest_byte_pairs(codes, code) : store_nearest_bytes(codes, code);
}

// Loads columns in their order in the row. Paired values end with whole vectors.
template <class F, class Lanes>
inline Floats load_in_order(const typename F::Element* x, std::int64_t column, Lanes lanes) {
  if constexpr (F::kPaired) {
    const std::int64_t pair = column / (2 * kLanes) * (2 * kLanes);
    float buffer[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const std::int64_t inside = column - pair + i;
      buffer[i] = x[pair + inside / 2 + inside % 2 * kLanes];
    }
    return load(buffer);
  } else {
    return load(x + column, lanes);
  }
}

// Stores int8 codes for any scale; a NaN becomes 0.
template <class F, class Scaled>
inline void store_int8(std::int8_t* codes, const typename F::Element* x, std::int64_t columns, const Scaled& scaled,
                       bool toward_zero) {
  for_each_vector(columns, [&](std::int64_t column, auto lanes) {
    const Floats code = at_most(at_least(scaled(load_in_order<F>(x, column, lanes)), -128.0f), 127.0f);
    const Floats whole = toward_zero ? truncated(code) : round_even(code);
    store_bytes(codes + column, integers_of(whole) & (code == code), lanes);
  });
}

// Calls together(column) for each kTogether whole columns, then rest(column) for the remaining ones.
template <class Together, class Rest>
inline void for_each_together(std::int64_t columns, Together together, Rest rest) {
  std::int64_t column = 0;
  for (; column + kTogether <= columns; column += kTogether) together(column);
  if (column < columns) rest(column);
}

// A part of a row: its values, the address of their codes, and the index of the first group.
template <class F>
struct Part {
  const typename F::Element* x;
  std::int8_t* codes;
  std::int64_t row;
  std::int64_t columns;
  std::int64_t group;  // index of the first one in the row
};

inline void give_scales(const QuantTask& task, std::int64_t row, std::int64_t group, const float* scales,
                        std::int64_t count) {
  float* to = task.scales + row * task.scales_stride + group * task.scales_step;
  if (task.scales_step == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = scales[i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * task.scales_step] = scales[i];
  }
}

inline Floats int8_scale(Floats magnitude, const QuantTask& task) {
  return at_least(larger(fill(task.least), magnitude) / 127.0f, task.least_scale);
}

template <class F>
inline void quantize_int8_groups(const QuantTask& task, const Part<F>& part) {
  GroupScales scales;
  const std::int64_t group = task.group, count = (part.columns + group - 1) / group;
  largest_magnitudes(scales.scale, part.x, part.columns, group);
  const bool ordinary =
      scales_of<F::kShort>(scales, count, [&](Floats magnitude) { return int8_scale(magnitude, task); });
  give_scales(task, part.row, part.group, scales.scale, count);
  const bool toward_zero = task.toward_zero;
  if (ordinary && group == kTogether && part.columns % kTogether == 0) {
    for (std::int64_t i = 0; i < count; ++i)
      store_int8_together<F>(part.codes + i * kTogether, part.x + i * kTogether, QuotientOf<F>(scales, i), toward_zero);
    return;
  }
  for_each_group(part.columns, group, [&](std::int64_t number, std::int64_t first, std::int64_t columns) {
    const auto* x = part.x + first;
    std::int8_t* codes = part.codes + first;
    const Quotient<false> divided(scales, number);
    if (!ordinary) return store_int8<F>(codes, x, columns, divided, toward_zero);
    const QuotientOf<F> quotient(scales, number);
    for_each_together(
        columns, [&](std::int64_t at) { store_int8_together<F>(codes + at, x + at, quotient, toward_zero); },
        [&](std::int64_t at) { store_int8<F>(codes + at, x + at, columns - at, divided, toward_zero); });
  });
}

template <class F>
inline void quantize_int8_row(const QuantTask& task, const Part<F>& part) {
  const float largest = largest_magnitude(part.x, part.columns);
  const bool is_number = largest == largest;
  const float scale = (is_number ? largest : largest_magnitude_of_numbers(part.x, part.columns)) / 127.0f;
  give_scales(task, part.row, part.group, &scale, 1);
  const Product scaled(1.0f / scale);
  if (!is_number || !(scale >= kLeastOrdinary && scale <= kLargestOrdinary))
    return store_int8<F>(part.codes, part.x, part.columns, scaled, false);
  for_each_together(
      part.columns, [&](std::int64_t at) { store_int8_together<F>(part.codes + at, part.x + at, scaled, false); },
      [&](std::int64_t at) { store_int8<F>(part.codes + at, part.x + at, part.columns - at, scaled, false); });
}

}  // namespace
}  // namespace weft::cpu
