#pragma once

// Linear layers over small codes with scales, for the kernels of linear_scaled, linear_fp8_block and linear_nvfp4. Rows
// and weights stay plain, as in the checkpoint. Rows are widened once; weights are widened where they are used. fp8 and
// fp4 are widened to f32, tile by tile, each tile for up to 64 rows. i8 is widened to 16 bits in registers; its sums
// are exact, so it has no scales of groups. With tiles, i8 is multiplied as it is, and fp8 as bf16, which is exact;
// scales of groups are factors of the sums of their groups. fp4 has no tiles.

#include "kernels/cpu/lib/result_kind.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/cpu/lib/scaled_linear_kernels.h"
#include "kernels/kernel.h"
#include "tensor/float8.h"

namespace weft::cpu {

// Scales of groups of a matrix of codes: f32, or f8e4m3, or none.
struct ScaleGrid {
  const float* data = nullptr;
  const std::uint8_t* small = nullptr;  // f8e4m3
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  std::int64_t group_rows = 1;
  std::int64_t group_columns = 1;

  bool is_there() const { return data != nullptr || small != nullptr; }
  float at(std::int64_t group_row, std::int64_t group_column) const {
    const std::int64_t place = group_row * row_stride + group_column * column_stride;
    return small == nullptr ? data[place] : f8e4m3_to_f32(small[place]);
  }
};

struct ScaledLinear {
  TensorView x;       // codes [rows, depth]
  TensorView weight;  // codes [columns, depth]
  TensorView bias;    // [columns], or not there
  TensorView result;  // [rows, columns]
  // Scales of the codes, applied before the product.
  ScaleGrid x_scale;
  ScaleGrid weight_scale;
  // Scales of the sums, applied after the product, those of columns first.
  ScaleGrid column_scale;
  ScaleGrid row_scale;
};

// Whether the operands are supported: codes with contiguous rows and one of these dtypes, a plain weight, and a bias of
// floats if any. `weight` and `bias` are operand indices.
Verdict supports_scaled_linear(const KernelRequest& request, std::initializer_list<DType> codes, std::size_t weight,
                               std::size_t bias);
Dim scaled_linear_scratch(const KernelRequest& request);
void run_scaled_linear(const ScaledLinearKernels& kernels, const ScaledLinear& linear, const KernelCall& call);

// Selects the code for the device's instruction set.
template <void (*run)(const ScaledLinearKernels&, const KernelCall&)>
void prepare_scaled_linear(Kernel& kernel, const DeviceDescription& device) {
  ScaledLinearKernels kernels =
      *table_for(device, scaled_linear_kernels_baseline, scaled_linear_kernels_avx2, scaled_linear_kernels_avx512);
  if (device.features >= CpuFeatures::amx) kernels.tiles = &scaled_tile_kernels_amx;
  kernel.run = [kernels](const KernelCall& call) { run(kernels, call); };
}

template <void (*run)(const ScaledLinearKernels&, const KernelCall&)>
Kernel scaled_linear_kernel(const char* op, Verdict (*supports)(const KernelRequest&)) {
  return {.op = op,
          .provider = "cpu",
          .supported = runs_on_cpu,
          .supports = supports,
          .prepare = prepare_scaled_linear<run>,
          .scratch_bytes = scaled_linear_scratch,
          .note =
              "16 columns and up to 64 rows at a time over the threads, f32 sums of lanes along k, 32-bit ones of i8; "
              "baseline avx2 avx512 amx"};
}

}  // namespace weft::cpu
