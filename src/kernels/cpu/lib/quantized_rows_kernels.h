#pragma once

// The functions of quantized_rows_skeleton.h: quantization of rows, alone (rows) or as the epilogue of another row-wise
// op, whose result is then never stored in memory. One table per instruction set, as in row_wise_kernels.h.

#include <cstdint>

#include "kernels/cpu/lib/row_wise_kernels.h"

namespace weft::cpu {

// How codes and scales are computed from a group's largest magnitude:
//   int8_groups  scale = max(magnitude, least) / 127, at least least_scale; nearest(x / scale), or truncated with
//                toward_zero; NaN becomes 0
//   int8_rows    the group is a row; scale = magnitude / 127, ignoring NaN; nearest(x * (1 / scale)); NaN becomes 0
//   fp8_groups   f8e4m3, or with `fnuz` f8e4m3fnuz, which has 224 in place of 448. The magnitude is at least `least`.
//                scale = magnitude / 448, or magnitude * (1 / 448). `bounded` says whether the magnitude or the scale
//                is at most `bound`. With power_of_two the scale is at least least_power and rounded up to a power of
//                two. It is at least least_scale. Codes are those of x / scale or x * (1 / scale). NaN stays NaN
//   fp8_given    the same formats. Scales are given; code of x * (1 / scale)
//   fp4_groups   f4e2m1, groups of kFp4Group; scale = f8e4m3(magnitude * (1 / 6) * global_scale), at most 448; code of
//                x * (1 / (scale * (1 / global_scale))), where 1 / 0 is 0. A NaN scale stays NaN; a NaN code is 6
enum class QuantRule : std::uint8_t { int8_groups, int8_rows, fp8_groups, fp8_given, fp4_groups };
enum class Bounded : std::uint8_t { nothing, magnitude, scale };

inline constexpr std::int64_t kFp4Group = 16;

// The largest number of columns of a group, or of a row that is one group, in an epilogue. They are kept until their
// scale is known.
inline constexpr std::int64_t kWaitingColumns = 65536;

// `x` and its stride are used only if quantization is the whole op.
struct QuantTask {
  QuantRule rule = QuantRule::int8_groups;
  const void* x = nullptr;
  std::int8_t* codes = nullptr;
  float* scales = nullptr;  // not for fp8_given and fp4_groups
  std::int64_t x_stride = 0;
  std::int64_t codes_stride = 0;   // in bytes
  std::int64_t scales_stride = 0;  // from row to row
  std::int64_t scales_step = 1;    // from group to group
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t group = 32;  // at most `columns`; the last one of a row may be short, of fp4_groups none is
  float least = 0;
  float least_scale = 0;
  bool toward_zero = false;

  bool fnuz = false;
  Bounded bounded = Bounded::nothing;
  float bound = 0;
  bool scale_by_reciprocal = false;
  bool power_of_two = false;
  float least_power = 0;
  bool codes_by_reciprocal = false;

  // fp8_given: the scale of row r and group g is given[(first_row + r) / given_rows * given_stride + g * given_step].
  const float* given = nullptr;
  std::int64_t first_row = 0;
  std::int64_t given_rows = 1;
  std::int64_t given_stride = 0;
  std::int64_t given_step = 0;

  // fp4_groups: codes of scales. With scale_tiles 0 they are in rows of scales_stride. Otherwise those of row first_row
  // + r are in swizzle_scale's tiles, with scale_tiles tiles in a row of tiles, and `x` begins with group first_group
  // of the row.
  std::uint8_t* scale_codes = nullptr;
  std::int64_t scale_tiles = 0;
  std::int64_t first_group = 0;
  float global_scale = 1;
};

// With two tasks, groups have at most kWaitingColumns, and the `output` of the first task is not written. The value
// that it would store is rounded to its element type and quantized; `gated_wide` does not round it.
struct QuantizedRowKernels {
  void (*rows[kElements])(const QuantTask&);
  void (*rms_norm[kElements][kWeightings])(const NormTask&, const QuantTask&);
  void (*fused_add_rms_norm[kElements][kWeightings])(const NormTask&, const QuantTask&);
  void (*gated[kGates][kElements])(const RowTask&, const QuantTask&);
  void (*gated_wide[kGates][kElements])(const RowTask&, const QuantTask&);
};
extern const QuantizedRowKernels quantized_row_kernels_baseline;
extern const QuantizedRowKernels quantized_row_kernels_avx2;
extern const QuantizedRowKernels quantized_row_kernels_avx512;

}  // namespace weft::cpu
