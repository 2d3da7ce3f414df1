#pragma once

// Quantisation of rows, alone and as the end of another row-wise op, for one instruction set (WEFT_FLOAT_VECTORS: see
// float_vector_operations.h). Codes and scales have the bits of the two ops one after the other: what the first would
// store is rounded to its element type T before it is quantised.

#include <cstdint>

#include "kernels/cpu/lib/quantised_rows_kernels.h"
#include "kernels/cpu/lib/row_wise_skeleton.h"

namespace weft::cpu {
namespace {

inline void store_bytes(std::int8_t* to, Integers x, AllLanes) { store_bytes(to, x); }
inline void store_bytes(std::int8_t* to, Integers x, FirstLanes lanes) {
  std::int8_t buffer[kLanes];
  store_bytes(buffer, x);
  std::memcpy(to, buffer, static_cast<unsigned>(lanes.count));
}

// Columns whose codes are made together: whole vectors on every instruction set.
constexpr std::int64_t kTogether = 32;

// Magnitudes as integers: the bits of a NaN are above those of infinity, so that a NaN is the largest.
inline Integers larger_magnitude(Integers largest, Floats x) {
  const Integers bits = bits_of(absolute(x));
  return bits > largest ? bits : largest;
}

inline float largest_lane(Integers x) {
#pragma GCC unroll 4
  for (int width = kLanes / 2; width > 0; width /= 2) {
    const Integers moved = __builtin_shuffle(x, lane_numbers() ^ width);
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

// Turns the largest magnitudes of groups into their scales. Whether all are normal numbers: then no quotient is NaN,
// and none rounds to a code beyond 127.
inline bool scales_of(float* scales, std::int64_t count, float least) {
  Integers normal = Integers{} - 1;
  for_each_vector(count, [&](std::int64_t group, auto lanes) {
    const Floats scale = larger(fill(least), load(scales + group, lanes)) / 127.0f;
    store(scales + group, scale, lanes);
    normal &= (scale >= 0x1p-126f) & (scale <= 0x1.fffffep127f);
  });
  bool all = true;
  for (int i = 0; i < kLanes; ++i) all &= normal[i] != 0;
  return all;
}

// Codes of kTogether columns, to be had of a normal scale.
template <bool toward_zero, class T>
inline void store_codes_together(std::int8_t* codes, const T* x, float scale) {
  Floats code[kTogether / kLanes];
#pragma GCC unroll 8
  for (int v = 0; v < kTogether / kLanes; ++v) {
    const Floats quotient = load(x + v * kLanes) / scale;
    code[v] = toward_zero ? truncated(quotient) : quotient;
  }
  store_nearest_bytes(codes, code);
}

template <bool toward_zero, class T>
inline void store_codes(std::int8_t* codes, const T* x, std::int64_t columns, float scale) {
  for_each_vector(columns, [&](std::int64_t column, auto lanes) {
    const Floats code = at_most(at_least(load(x + column, lanes) / scale, -128.0f), 127.0f);
    const Floats whole = toward_zero ? truncated(code) : round_even(code);
    store_bytes(codes + column, integers_of(whole) & (code == code), lanes);
  });
}

template <bool toward_zero, class T>
inline void store_codes_of_groups(std::int8_t* codes, const T* x, std::int64_t group, const float* scales,
                                  std::int64_t count, bool normal) {
  if (normal && group == kTogether) {
    for (std::int64_t i = 0; i < count; ++i)
      store_codes_together<toward_zero>(codes + i * kTogether, x + i * kTogether, scales[i]);
  } else if (normal && group % kTogether == 0) {
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t column = i * group; column < (i + 1) * group; column += kTogether)
        store_codes_together<toward_zero>(codes + column, x + column, scales[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      store_codes<toward_zero>(codes + i * group, x + i * group, group, scales[i]);
  }
}

// Codes and scales of `columns` elements in groups.
template <class T>
void quantise(const GroupQuantTask& task, const T* x, std::int64_t columns, std::int8_t* codes, float* scales) {
  const std::int64_t group = task.group, count = columns / group;
  if (group == kTogether) {
    for (std::int64_t i = 0; i < count; ++i) scales[i] = largest_magnitude(x + i * kTogether, kTogether);
  } else {
    for (std::int64_t i = 0; i < count; ++i) scales[i] = largest_magnitude(x + i * group, group);
  }
  const bool normal = scales_of(scales, count, task.least);
  task.toward_zero ? store_codes_of_groups<true>(codes, x, group, scales, count, normal)
                   : store_codes_of_groups<false>(codes, x, group, scales, count, normal);
}

template <class T>
void groups(const GroupQuantTask& task) {
  for (std::int64_t row = 0; row < task.rows; ++row)
    quantise(task, row_of<T>(task.x, row, task.x_stride), task.columns, task.codes + row * task.codes_stride,
             task.scales + row * task.scales_stride);
}

// `columns` values of a row from `first`, value(column, lanes) at first + column: they fit a block in L1, where they
// wait for their group's scale.
template <class Value>
__attribute__((always_inline)) inline void quantise_block(const GroupQuantTask& task, std::int64_t row,
                                                          std::int64_t first, std::int64_t columns, Value value) {
  float block[kBlockColumns];
  for_each_vector(columns,
                  [&](std::int64_t column, auto lanes) { store(block + column, value(column, lanes), lanes); });
  quantise(task, block, columns, task.codes + row * task.codes_stride + first,
           task.scales + row * task.scales_stride + first / task.group);
}

// All of a row's columns.
template <class Value>
__attribute__((always_inline)) inline void quantise_values(const GroupQuantTask& task, std::int64_t row, Value value) {
  const std::int64_t width = kBlockColumns / task.group * task.group;
  for (std::int64_t first = 0; first < task.columns; first += width) {
    const std::int64_t columns = task.columns - first < width ? task.columns - first : width;
    quantise_block(task, row, first, columns,
                   [&](std::int64_t column, auto lanes) { return value(first + column, lanes); });
  }
}

template <class T, class Weight>
void rms_norm_groups(const NormTask& task, const GroupQuantTask& quant) {
  normalised_rows<T, Weight>(
      task, [&](std::int64_t row, auto value) __attribute__((always_inline)) {
        quantise_values(quant, row, [&](std::int64_t column, auto lanes) {
          return rounded_scaled<T, Weight>(value(column, lanes));
        });
      });
}

template <class T, class Weight>
void fused_add_rms_norm_groups(const NormTask& task, const GroupQuantTask& quant) {
  const auto take = [&](std::int64_t row, auto value) __attribute__((always_inline)) {
    quantise_values(quant, row,
                    [&](std::int64_t column, auto lanes) { return rounded_scaled<T, Weight>(value(column, lanes)); });
  };
  task.normalise_rounded ? normalised_sums<T, Weight, true>(task, take) : normalised_sums<T, Weight, false>(task, take);
}

template <Gate gate, class T>
void gated_groups(const RowTask& task, const GroupQuantTask& quant) {
  const std::int64_t width = kBlockColumns / quant.group * quant.group;
  gated_blocks<gate, T>(
      task, width,
      [&](std::int64_t row, std::int64_t first, std::int64_t columns, auto value) __attribute__((always_inline)) {
        quantise_block(quant, row, first, columns,
                       [&](std::int64_t column, auto lanes) { return rounded_result<T>(value(column, lanes)); });
      });
}

constexpr QuantisedRowKernels make_quantised_row_kernels() {
  return {
      .groups = {groups<float>, groups<Half>, groups<Brain>},
      .rms_norm_groups = {{rms_norm_groups<float, NoWeight>, rms_norm_groups<float, float>,
                           rms_norm_groups<float, float>},
                          {rms_norm_groups<Half, NoWeight>, rms_norm_groups<Half, float>, rms_norm_groups<Half, Half>},
                          {rms_norm_groups<Brain, NoWeight>, rms_norm_groups<Brain, float>,
                           rms_norm_groups<Brain, Brain>}},
      .fused_add_rms_norm_groups = {{fused_add_rms_norm_groups<float, NoWeight>,
                                     fused_add_rms_norm_groups<float, float>, fused_add_rms_norm_groups<float, float>},
                                    {fused_add_rms_norm_groups<Half, NoWeight>, fused_add_rms_norm_groups<Half, float>,
                                     fused_add_rms_norm_groups<Half, Half>},
                                    {fused_add_rms_norm_groups<Brain, NoWeight>,
                                     fused_add_rms_norm_groups<Brain, float>, fused_add_rms_norm_groups<Brain, Brain>}},
      .gated_groups = {{gated_groups<Gate::silu, float>, gated_groups<Gate::silu, Half>,
                        gated_groups<Gate::silu, Brain>},
                       {gated_groups<Gate::gelu, float>, gated_groups<Gate::gelu, Half>,
                        gated_groups<Gate::gelu, Brain>},
                       {gated_groups<Gate::gelu_tanh, float>, gated_groups<Gate::gelu_tanh, Half>,
                        gated_groups<Gate::gelu_tanh, Brain>}},
  };
}

}  // namespace
}  // namespace weft::cpu
