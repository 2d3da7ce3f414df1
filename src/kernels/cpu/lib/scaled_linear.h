#pragma once

// Linear layers over byte codes with scales, for the kernels of linear_scaled and linear_fp8_block. Rows and weights
// stay plain, one byte a code as a checkpoint has them: rows are widened to f32 once, weights tile by tile, each tile
// for up to 64 rows; one row is bound by reading the codes.

#include "kernels/cpu/lib/scaled_linear_kernels.h"
#include "kernels/kernel.h"

namespace weft::cpu {

// Scales of groups of a matrix of codes.
struct ScaleGrid {
  const float* data = nullptr;  // null: no scales
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  std::int64_t group_rows = 1;
  std::int64_t group_columns = 1;

  float at(std::int64_t row, std::int64_t column) const {
    return data[row / group_rows * row_stride + column / group_columns * column_stride];
  }
};

struct ScaledLinear {
  TensorView x;       // codes [rows, depth]
  TensorView weight;  // codes [columns, depth]
  TensorView bias;    // [columns], or not there
  TensorView result;  // [rows, columns]
  // Scales of codes before they are multiplied,
  ScaleGrid x_scale;
  ScaleGrid weight_scale;
  // or of the sums after that: those of columns first.
  ScaleGrid column_scale;
  ScaleGrid row_scale;
};

// Codes of i8 or f8e4m3 with contiguous rows, a plain weight, scales in f32.
Verdict supports_scaled_linear(const KernelRequest& request);
Dim scaled_linear_scratch(const KernelRequest& request);
void run_scaled_linear(const ScaledLinearKernels& kernels, const ScaledLinear& linear, const KernelCall& call);
const ScaledLinearKernels& scaled_linear_kernels_for(const DeviceDescription& device);

inline constexpr const char* kScaledLinearNote =
    "16 columns and up to 64 rows at a time over the threads, f32 sums of lanes along k; baseline avx2 avx512";

}  // namespace weft::cpu
