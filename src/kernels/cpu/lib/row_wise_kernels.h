#pragma once

// The functions of row_wise_skeleton.h for the row-wise kernels of kernels/cpu: one table per instruction set. Each
// function computes the same bits on every instruction set. Plain types only: these objects must instantiate nothing of
// std.
//
// `rows` is the number of rows and `columns` their length; strides are in elements; a row is contiguous.

#include <cstdint>

#include "kernels/cpu/lib/element.h"

namespace weft::cpu {

inline constexpr std::int64_t kMaxRotaryDim = 1024;
// Columns that are kept in L1, as floats.
inline constexpr std::int64_t kBlockColumns = 1024;

struct NormTask {
  const void* x = nullptr;
  const void* residual = nullptr;  // fused_add_rms_norm only, with residual_output
  const void* weight = nullptr;
  void* output = nullptr;           // may be x
  void* residual_output = nullptr;  // may be residual
  std::int64_t x_stride = 0;
  std::int64_t residual_stride = 0;
  std::int64_t output_stride = 0;
  std::int64_t residual_output_stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t variance_columns = 0;
  float epsilon = 0;
  bool normalize_rounded = false;  // the sum as stored, not as computed
};

struct RowTask {
  const void* x = nullptr;
  const void* y = nullptr;  // second operand, if there is one
  void* output = nullptr;
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
  std::int64_t output_stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // of the output
};

struct RotatedHeads {
  const void* x = nullptr;
  void* output = nullptr;  // may be x
  std::int64_t x_stride = 0;
  std::int64_t output_stride = 0;
  std::int64_t heads = 0;
};

// Rotates the heads of query and key, either of which may have none, for tokens [0, rows).
struct RotaryTask {
  RotatedHeads query;
  RotatedHeads key;
  std::int64_t rows = 0;
  std::int64_t head_size = 0;
  std::int64_t rotary_dim = 0;  // even, at most kMaxRotaryDim
  bool neox = true;
  const std::int64_t* positions = nullptr;  // in range
  const void* cos_sin_cache = nullptr;      // rows of rotary_dim
  Element cache_element = Element::f32;
  std::int64_t cache_stride = 0;
};

enum class Weighting : std::uint8_t { none, f32, same };  // `same`: of x's element type
inline constexpr int kWeightings = 3;
enum class Gate : std::uint8_t { silu, gelu, gelu_tanh };
inline constexpr int kGates = 3;

struct RowWiseKernels {
  void (*rms_norm[kElements][kWeightings])(const NormTask&);
  void (*fused_add_rms_norm[kElements][kWeightings])(const NormTask&);
  void (*gated[kGates][kElements])(const RowTask&);  // x has 2 * columns
  void (*add[kElements])(const RowTask&);
  void (*mul[kElements])(const RowTask&);
  void (*cast[kElements][kElements])(const RowTask&);  // from, to
  void (*softmax[kElements])(const RowTask&);
  void (*rotary[kElements])(const RotaryTask&);
};
extern const RowWiseKernels row_wise_kernels_baseline;
extern const RowWiseKernels row_wise_kernels_avx2;
extern const RowWiseKernels row_wise_kernels_avx512;

}  // namespace weft::cpu
