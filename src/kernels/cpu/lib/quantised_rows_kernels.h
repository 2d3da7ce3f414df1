#pragma once

// What the objects of quantised_rows_skeleton.h offer: quantisation of rows, alone and as the end of another row-wise
// op, whose result then never reaches memory. One table per instruction set, as row_wise_kernels.h has it.

#include <cstdint>

#include "kernels/cpu/lib/row_wise_kernels.h"

namespace weft::cpu {

// Codes and scales of groups. `x`, its stride and `rows` count only where quantisation stands alone.
struct GroupQuantTask {
  const void* x = nullptr;
  std::int8_t* codes = nullptr;
  float* scales = nullptr;
  std::int64_t x_stride = 0;
  std::int64_t codes_stride = 0;
  std::int64_t scales_stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // a multiple of `group`
  std::int64_t group = 32;
  float least = 0;  // the smallest maximum a scale is made of
  bool toward_zero = false;
};

// Where there are two tasks, groups have at most kBlockColumns; what the first would store as its output is rounded
// to its element type and quantised. Its own `output` is not written.
struct QuantisedRowKernels {
  void (*groups[kElements])(const GroupQuantTask&);
  void (*rms_norm_groups[kElements][kWeightings])(const NormTask&, const GroupQuantTask&);
  void (*fused_add_rms_norm_groups[kElements][kWeightings])(const NormTask&, const GroupQuantTask&);
  void (*gated_groups[kGates][kElements])(const RowTask&, const GroupQuantTask&);
};
extern const QuantisedRowKernels quantised_row_kernels_baseline;
extern const QuantisedRowKernels quantised_row_kernels_avx2;
extern const QuantisedRowKernels quantised_row_kernels_avx512;

}  // namespace weft::cpu
