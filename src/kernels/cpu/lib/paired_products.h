#pragma once

// silu_and_mul and the norms of bf16 with an epilogue that quantizes groups, for one instruction set
// (WEFT_FLOAT_VECTORS: see float_vector_operations.h). They quantize a product a * y, where y is a bf16 operand and a
// is computed from the bf16 operand x and rounded. This is the fast path, with about two thirds of the instructions of
// the fallback:
//   * Even and odd columns are in two vectors, which a shift and a mask extract from memory.
//   * Only magnitudes are computed and kept. The signs are those of x and y, combined for 32 columns at a time.
//   * A product of two bf16 has at most 16 significant bits and is rounded to bf16 by two multiplications.
// The guard: with infinities, NaN, huge or tiny numbers a scale is not ordinary or a factor is large. A row with such
// numbers is computed again by the fallback. The bits are always those of the fallback.

#include <cstdint>
#include <cstring>

#include "kernels/cpu/lib/quantize_fp8.h"
#include "kernels/cpu/lib/row_wise_skeleton.h"

namespace weft::cpu {
namespace {

// Near denormals a factor a, which is then below 2^-125, and a product may be wrong by 2^-133. If y is below 2^65 and
// scales are at least 2^-48, this changes neither codes nor scales.
constexpr std::int32_t kLargeFactor = 0x6000;  // 2^65 as bf16
constexpr float kLeastProductScale = 0x1p-48f;
constexpr std::int64_t kLineBytes = 64;  // of a cache

inline Integers magnitudes_of(Integers pairs) { return pairs & 0x7fff7fff; }
inline Words larger_bits(Words largest, Floats x) {
  const Words bits = reinterpret_cast<Words>(x);
  return bits > largest ? bits : largest;
}

// a * y of bf16 that are not negative, rounded to bf16, ties to even; infinity or NaN from 2^111 on. For a product m *
// 2^e with m < 2^16, the sum of m * 2^16 and m is rounded to a multiple of 2^8, which m * 2^16 is already.
inline Floats rounded_product(Floats a, Floats y) {
  const Floats product = a * y;
  return multiply_add(product, fill(-65536.0f), product * 65537.0f);
}
// Any x >= 0 rounded to bf16, ties to even; NaN from 2^111 on (Veltkamp's splitting).
inline Floats rounded_by_splitting(Floats x) {
  const Floats far = x * 65537.0f;
  return far - (far - x);
}
// The same if no x above 2^-125 is halfway between two bf16.
inline Floats rounded_half_up(Floats x) {
  return floats_of(wrapping_sum(bits_of(x), Integers{} + 0x8000) & static_cast<std::int32_t>(0xffff0000));
}

// Whole groups of a row, at most kBlockColumns: their products, which may overwrite the values they are computed from.
struct ProductBlock {
  float values[kBlockColumns];
  GroupScales scales;
};

// Computes the products of a group of whole pairs. Returns the largest; NaN counts as larger than all. factor(column,
// |x|, lanes) returns a.
template <class Factor>
__attribute__((always_inline)) inline float group_products(float* products, const Brain* x, const Brain* y,
                                                           std::int64_t columns, Integers& large, Factor factor) {
  Words largest_even = {}, largest_odd = {};
  for (std::int64_t column = 0; column < columns; column += 2 * kLanes) {
    const Integers xs = magnitudes_of(load_bits(x + column)), ys = magnitudes_of(load_bits(y + column));
    large = larger_unsigned_words(large, ys);
    const Floats even = rounded_product(factor(column, even_of(xs), EvenLanes{}), even_of(ys));
    const Floats odd = rounded_product(factor(column + kLanes, odd_of(xs), OddLanes{}), odd_of(ys));
    store(products + column, even);
    store(products + column + kLanes, odd);
    largest_even = larger_bits(largest_even, even);
    largest_odd = larger_bits(largest_odd, odd);
  }
  return largest_lane(largest_even > largest_odd ? largest_even : largest_odd);
}

// Like for_each_group, but for short groups the compiler knows the count.
template <class Body>
__attribute__((always_inline)) inline void for_each_product_group(std::int64_t columns, std::int64_t group, Body body) {
  if (group != kTogether) return for_each_group(columns, group, body);
  for (std::int64_t i = 0; i < columns / kTogether; ++i) body(i, i * kTogether, kTogether);
}

// Computes the products of a block, and stores the largest of each group at the location of its scale. Returns whether
// no y is large.
template <class Factor>
__attribute__((always_inline)) inline bool block_products(ProductBlock& block, const Brain* x, const Brain* y,
                                                          std::int64_t columns, std::int64_t group, Factor factor) {
  Integers large = {};
  const auto make = [&](std::int64_t number, std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
    const auto factor_of_group = [&](std::int64_t column, Floats magnitude, auto lanes) __attribute__((always_inline)) {
      return factor(first + column, magnitude, lanes);
    };
    block.scales.scale[number] =
        group_products(block.values + first, x + first, y + first, count, large, factor_of_group);
  };
  for_each_product_group(columns, group, make);
  const Integers to_sign_bit = (Integers{} + (0x8000 - kLargeFactor)) * 0x10001;
  return every_lane((wrapping_sum(large, to_sign_bit) & static_cast<std::int32_t>(0x80008000)) == 0);
}

// Computes codes of ratios >= 0 in the low 8 bits of integers, and stores them with their signs.
struct Fp8Codes {
  // The low bits of the sum are the multiple of the code's last place, plus 56, which adjusts for the biases of both
  // exponents modulo 256. The exponent comes from `power`.
  static Integers low(Floats ratio) {
    const Integers bits = bits_of(ratio) & 0x7f800000;
    const Integers power = bits > 0x3c800000 ? bits : Integers{} + 0x3c800000;
    return bits_of(multiply_add(floats_of(power), fill(0x1.00007p+20f), ratio)) + (power >> 20);
  }
  static void store(std::int8_t* to, const Integers* words, const Integers* signs) {
    store_low_bytes_or_signs(to, words, signs);
  }
};
struct Int8Codes {
  static Integers low(Floats ratio) { return bits_of(ratio + 0x1.8p+23f); }
  static void store(std::int8_t* to, const Integers* words, const Integers* signs) {
    store_low_bytes_negated(to, words, signs);
  }
};
struct TruncatedInt8Codes : Int8Codes {
  static Integers low(Floats ratio) { return Int8Codes::low(truncated(ratio)); }
};

template <class Codes>
__attribute__((always_inline)) inline void block_codes(const ProductBlock& block, std::int8_t* codes, const Brain* x,
                                                       const Brain* y, std::int64_t columns, std::int64_t group) {
  constexpr int kPairs = kVectorsTogether / 2;
  const auto make = [&](std::int64_t number, std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
    const Quotient<kFusesMultiplyAdd> quotient(block.scales, number);
    for (std::int64_t column = first; column < first + count; column += kTogether) {
      Integers words[kPairs], signs[kPairs];
#pragma GCC unroll 8
      for (int p = 0; p < kPairs; ++p) {
        const std::int64_t at = column + 2 * p * kLanes;
        const Integers even = Codes::low(quotient(load(block.values + at)));
        const Integers odd = Codes::low(quotient(load(block.values + at + kLanes)));
        words[p] = blended_words(even, odd << 16);
        signs[p] = load_bits(x + at) ^ load_bits(y + at);
      }
      Codes::store(codes + column, words, signs);
    }
  };
  for_each_product_group(columns, group, make);
}

// Whether the fast path supports this task.
inline bool quantizes_products(const QuantTask& task) {
  const bool by_groups =
      task.rule == QuantRule::int8_groups || (task.rule == QuantRule::fp8_groups && !task.fnuz &&
                                              task.bounded == Bounded::nothing && !task.codes_by_reciprocal);
  return by_groups && task.group % kTogether == 0 && task.columns % kTogether == 0 && task.group <= kBlockColumns;
}

// Stores the codes and scales of a row. Calls begin(first, columns) before the factors of a block, whose columns count
// from `first`. Returns false if the fallback must compute the row. The memory of the codes is prefetched.
template <class Begin, class Factor>
__attribute__((always_inline)) inline bool quantized_products(ProductBlock& block, const QuantTask& task,
                                                              std::int64_t row, const Brain* x, const Brain* y,
                                                              Begin begin, Factor factor) {
  const std::int64_t group = task.group, width = kBlockColumns / group * group;
  const bool fp8 = task.rule == QuantRule::fp8_groups;
  const auto scale_of = [&](Floats magnitude) {
    return fp8 ? fp8_scale(magnitude, task) : int8_scale(magnitude, task);
  };
  std::int8_t* codes = task.codes + row * task.codes_stride;
  for (std::int64_t first = 0; first < task.columns; first += width, x += width, y += width) {
    const std::int64_t columns = task.columns - first < width ? task.columns - first : width;
    const std::int64_t groups = (columns + group - 1) / group;
    for (std::int64_t column = 0; column < columns; column += kLineBytes) __builtin_prefetch(codes + first + column, 1);
    begin(first, columns);
    const bool small = block_products(block, x, y, columns, group, factor);
    if (!scales_of<true>(block.scales, groups, scale_of, kLeastProductScale) || !small) return false;
    give_scales(task, row, first / group, block.scales.scale, groups);
    if (fp8) {
      block_codes<Fp8Codes>(block, codes + first, x, y, columns, group);
    } else if (task.toward_zero) {
      block_codes<TruncatedInt8Codes>(block, codes + first, x, y, columns, group);
    } else {
      block_codes<Int8Codes>(block, codes + first, x, y, columns, group);
    }
  }
  return true;
}

// The task for one row of `task`.
inline QuantTask row_alone(QuantTask task, std::int64_t row) {
  task.codes += row * task.codes_stride;
  task.scales += row * task.scales_stride;
  task.first_row += row;
  task.rows = 1;
  return task;
}

inline Floats silu_divisor_of_operand(Floats x) {
  return kFusesMultiplyAdd ? bfloat_silu_divisor(x) : vector_silu_divisor(x);
}

// silu_and_mul. general(row) is the fallback, which stores the codes and scales of a row.
template <class General>
inline void quantized_silu_products(const RowTask& task, const QuantTask& quant, General general) {
  ProductBlock block;
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const Brain* x = row_of<Brain>(task.x, row, task.x_stride);
    const Brain* y = x + task.columns;
    const auto divisors = [&](std::int64_t first, std::int64_t columns) {
      for (std::int64_t column = 0; column < columns; column += 2 * kLanes) {
        __builtin_prefetch(y + first + column);
        const Integers pairs = silu_operands(load_bits(x + first + column));
        store(block.values + column, silu_divisor_of_operand(even_of(pairs)));
        store(block.values + column + kLanes, silu_divisor_of_operand(odd_of(pairs)));
      }
    };
    const auto factor = [&](std::int64_t column, Floats magnitude, auto) __attribute__((always_inline)) {
      return rounded_half_up(magnitude / load(block.values + column));
    };
    if (!quantized_products(block, quant, row, x, y, divisors, factor)) general(row);
  }
}

struct FloatPairs {
  Floats even, odd;
};
inline FloatPairs squares_of(Integers pairs) {
  const Floats even = even_of(pairs), odd = odd_of(pairs);
  return {even * even, odd * odd};
}

// The row sum of the reference math over the values that square(column) returns for pairs. `columns` is a multiple of
// kTogether.
template <class Square>
__attribute__((always_inline)) inline float paired_row_sum(std::int64_t columns, Square square) {
  constexpr int kVectors = kReferenceSumLanes / kLanes;
  static_assert(kReferenceSumLanes == 2 * kTogether);
  Floats partial[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) partial[v] = Floats{};
  const auto add = [&](std::int64_t column, int vectors) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v += 2) {
      const auto [even, odd] = square(column + v * kLanes);
      partial[v] = partial[v] + even;
      partial[v + 1] = partial[v + 1] + odd;
    }
  };
  std::int64_t column = 0;
  for (; column + kReferenceSumLanes <= columns; column += kReferenceSumLanes) add(column, kVectors);
  if (column < columns) add(column, kVectors / 2);
#pragma GCC unroll 4
  for (int width = kVectors / 2; width > 1; width /= 2) {
#pragma GCC unroll 8
    for (int v = 0; v < width; ++v) partial[v] = partial[v] + partial[v + width];
  }
  float lanes[2 * kLanes];
  for (int i = 0; i < kLanes; ++i) {
    lanes[2 * i] = partial[0][i];
    lanes[2 * i + 1] = partial[1][i];
  }
  for (int width = kLanes; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// Stores codes and scales of x * scale, rounded, times y. Prefetches the two rows that follow, so that this loop does
// not stall on memory.
inline bool quantized_normalized(ProductBlock& block, const QuantTask& quant, std::int64_t row, const Brain* x,
                                 const Brain* y, float scale, const Brain* next, const Brain* next_residual) {
  const Floats scales = fill(scale);
  const Brain *fetched = next, *fetched_residual = next_residual;
  const auto begin = [&](std::int64_t first, std::int64_t) {
    fetched = next + first;
    fetched_residual = next_residual + first;
  };
  const auto factor = [&](std::int64_t column, Floats magnitude, auto lanes) __attribute__((always_inline)) {
    __builtin_prefetch((__is_same(decltype(lanes), EvenLanes) ? fetched : fetched_residual) + column);
    return rounded_by_splitting(magnitude * scales);
  };
  return quantized_products(block, quant, row, x, y, begin, factor);
}

// rms_norm. general(row) is the fallback, which stores the codes and scales of a row.
template <class General>
inline void quantized_norm_products(const NormTask& task, const QuantTask& quant, General general) {
  const Brain* weight = static_cast<const Brain*>(task.weight);
  ProductBlock block;
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const Brain* x = row_of<Brain>(task.x, row, task.x_stride);
    const Brain* next = x + task.x_stride;
    const float squares = paired_row_sum(
        task.columns, [&](std::int64_t column)
                          __attribute__((always_inline)) { return squares_of(load_bits(x + column)); });
    const float scale = norm_scale(squares, task);
    if (!quantized_normalized(block, quant, row, x, weight, scale, next, next)) general(row);
  }
}

// fused_add_rms_norm that normalizes the stored sum. general(row, sums, scale) is the fallback, which stores the codes
// and scales of a row.
template <class General>
inline void quantized_sum_norm_products(const NormTask& task, const QuantTask& quant, General general) {
  const Brain* weight = static_cast<const Brain*>(task.weight);
  ProductBlock block;
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const Brain* x = row_of<Brain>(task.x, row, task.x_stride);
    const Brain* residual = row_of<Brain>(task.residual, row, task.residual_stride);
    Brain* sums = row_of<Brain>(task.residual_output, row, task.residual_output_stride);
    const float squares = paired_row_sum(
        task.columns, [&](std::int64_t column) __attribute__((always_inline)) {
          const Integers a = load_bits(x + column), b = load_bits(residual + column);
          const Integers even = quiet_brain_bits(even_of(a) + even_of(b)),
                         odd = quiet_brain_bits(odd_of(a) + odd_of(b));
          const Integers pairs = blended_words(reinterpret_cast<Integers>(reinterpret_cast<Words>(even) >> 16), odd);
          std::memcpy(sums + column, &pairs, sizeof(pairs));
          return squares_of(pairs);
        });
    const float scale = norm_scale(squares, task);
    if (!quantized_normalized(block, quant, row, sums, weight, scale, x + task.x_stride,
                              residual + task.residual_stride))
      general(row, sums, scale);
  }
}

}  // namespace
}  // namespace weft::cpu
