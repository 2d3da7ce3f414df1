#pragma once

// The functions of recurrent_skeleton.h for causal_conv1d, linear_attention and selective_scan: one table per
// instruction set. Plain types only, as in row_wise_kernels.h.

#include <cstdint>

#include "kernels/cpu/lib/element.h"

namespace weft::cpu {

inline constexpr int kMostTaps = 4;
inline constexpr int kMostLanes = 16;  // floats of a vector

// Some channels of a sequence's rows, one block of pages at most. Strides are in elements.
struct ConvolutionTask {
  const void* x = nullptr;
  void* y = nullptr;
  const float* taps = nullptr;  // rows
  const float* bias = nullptr;  // may be null
  float* state = nullptr;       // a row less; updated
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
  std::int64_t taps_stride = 0;
  std::int64_t state_stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// One value head of a sequence's rows.
struct LinearAttentionTask {
  const float* query = nullptr;  // [rows, key_dim]
  const float* key = nullptr;    // the same
  const void* value = nullptr;
  const float* decay = nullptr;  // [rows]
  const float* beta = nullptr;   // [rows]
  float* state = nullptr;        // [key_dim, value_dim]; updated
  float* tile = nullptr;         // scratch of key_dim * kMostLanes
  void* output = nullptr;
  std::int64_t value_stride = 0;
  std::int64_t output_stride = 0;
  std::int64_t rows = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  float scale = 1;
  bool delta = false;
};

// Some channels of a sequence's rows.
struct SelectiveScanTask {
  const void* x = nullptr;
  void* y = nullptr;
  const float* steps = nullptr;
  const float* decay = nullptr;   // [state_rows, columns], rows `state_stride` apart
  const float* input = nullptr;   // [rows, state_rows]
  const float* output = nullptr;  // the same
  float* state = nullptr;         // [state_rows, columns]; updated
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
  std::int64_t steps_stride = 0;
  std::int64_t state_stride = 0;
  std::int64_t rows = 0;
  std::int64_t state_rows = 0;
  std::int64_t columns = 0;
};

struct RecurrentKernels {
  void (*convolution[kElements][kMostTaps + 1])(const ConvolutionTask&);  // by taps, from 2 on
  void (*linear_attention[kElements])(const LinearAttentionTask&);
  void (*selective_scan[kElements])(const SelectiveScanTask&);
  void (*widen[kElements])(const void* from, float* to, std::int64_t count);
};
extern const RecurrentKernels recurrent_kernels_baseline;
extern const RecurrentKernels recurrent_kernels_avx2;
extern const RecurrentKernels recurrent_kernels_avx512;

}  // namespace weft::cpu
