#pragma once

// What the objects of fp8_rows_skeleton.h offer: quantisation of rows to f8e4m3, by group or by row. One table per
// instruction set, as row_wise_kernels.h has it.

#include <cstdint>

#include "kernels/cpu/lib/row_wise_kernels.h"

namespace weft::cpu {

// For each group of a row: magnitude = the largest one, at least least_magnitude, at most bound where has_bound says;
// scale = magnitude / 448 or times 1 / 448, with power_of_two raised to least_power and rounded up, at least
// least_scale; code of x / scale or of x * (1 / scale). NaN stays NaN throughout.
struct Fp8RowsTask {
  const void* x = nullptr;
  std::int8_t* codes = nullptr;
  float* scales = nullptr;
  std::int64_t x_stride = 0;
  std::int64_t codes_stride = 0;
  std::int64_t scales_stride = 0;  // from row to row
  std::int64_t scales_step = 1;    // from group to group
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t group = 128;  // the last one of a row may be short
  float least_magnitude = 0;
  bool has_bound = false;
  float bound = 0;
  bool scale_by_reciprocal = false;
  bool power_of_two = false;
  float least_power = 0;
  float least_scale = 0;
  bool codes_by_reciprocal = false;
};

struct Fp8RowsKernels {
  void (*rows[kElements])(const Fp8RowsTask&);
};
extern const Fp8RowsKernels fp8_rows_kernels_baseline;
extern const Fp8RowsKernels fp8_rows_kernels_avx2;
extern const Fp8RowsKernels fp8_rows_kernels_avx512;

}  // namespace weft::cpu
