// linear_nvfp4 on the CPU: codes are multiplied by the scales of their blocks of 16 in f32, and the sums by the two
// global scales.
//
// With intermediate=output_dtype, which is for results that equal others' to the last bit, operands are rounded before
// they are multiplied, and sums have the order of the op's meaning. The threads compute 4 columns and up to 64 rows at
// a time.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/lib/scaled_linear.h"
#include "kernels/registry.h"
#include "tensor/convert.h"
#include "tensor/quant_key.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) {
  if (request.attributes.at("swizzled_scales").boolean()) return Verdict::no("scales are swizzled");
  return supports_scaled_linear(request, {DType::f4e2m1}, /*weight=*/3, /*bias=*/6);
}

ScaleGrid scales_of_blocks(const TensorView& scale) {
  return {.small = scale.as<const std::uint8_t>(),
          .row_stride = scale.stride[0],
          .column_stride = scale.stride[1],
          .group_columns = kNvfp4Group};
}

void run_unrounded(const ScaledLinearKernels& kernels, const KernelCall& call) {
  const float factor = *call.operands[5].as<const float>() / *call.operands[2].as<const float>();
  run_scaled_linear(kernels,
                    {.x = call.operands[0],
                     .weight = call.operands[3],
                     .bias = call.operands[6],
                     .result = call.results[0],
                     .x_scale = scales_of_blocks(call.operands[1]),
                     .weight_scale = scales_of_blocks(call.operands[4]),
                     .column_scale = {},
                     .row_scale = {.data = &factor}},
                    call);
}

constexpr std::int64_t kTileColumns = 4, kTileRows = 64, kTileDepth = 1024;

// Four partial sums of a product, one for each remainder of k by 4.
using Quad = float __attribute__((vector_size(16)));

// A matrix of codes whose values are rounded to `dtype`.
struct RoundedCodes {
  const ScaledLinearKernels& kernels;
  TensorView codes;
  ScaleGrid scales;
  float global_scale;
  bool divides;  // by the global scale, instead of multiplying
  DType dtype;

  // Widens codes [first, first + count) of a row, which are whole blocks.
  void widen(std::int64_t row, std::int64_t first, std::int64_t count, float* to) const {
    const std::byte* from = codes.data + (row * codes.stride[0] + first) / 2;
    for (std::int64_t k = 0; k < count; k += kNvfp4Group) {
      const float scale = scales.at(row, (first + k) / kNvfp4Group);
      const float width = divides ? scale / global_scale : scale * global_scale;
      kernels.widen[static_cast<std::size_t>(SmallCode::f4e2m1)](from + k / 2, width, to + k, kNvfp4Group);
    }
    if (dtype == DType::f32) return;
    for (std::int64_t k = 0; k < count; ++k) to[k] = rounded(to[k]);
  }
  float rounded(float value) const {
    std::byte bytes[sizeof(float)];
    store_float(dtype, bytes, 0, value);
    return load_float(dtype, bytes, 0);
  }
};

// Adds the products of row r of x and column c of the tile to sums[r][c].
void add_in_order(const float* x, std::int64_t x_stride, const float (&tile)[kTileColumns][kTileDepth],
                  std::int64_t rows, std::int64_t depth, Quad (*sums)[kTileColumns]) {
  const auto quad_at = [](const float* from) {
    Quad quad;
    std::memcpy(&quad, from, sizeof(quad));
    return quad;
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    Quad sum[kTileColumns];
    std::copy_n(sums[row], kTileColumns, sum);
    for (std::int64_t k = 0; k < depth; k += 4) {
      const Quad values = quad_at(x + row * x_stride + k);
      for (std::int64_t c = 0; c < kTileColumns; ++c) sum[c] += values * quad_at(tile[c] + k);
    }
    std::copy_n(sum, kTileColumns, sums[row]);
  }
}

void run_rounded(const ScaledLinearKernels& kernels, const KernelCall& call) {
  const TensorView &bias = call.operands[6], &result = call.results[0];
  const auto side = [&](std::size_t codes, bool divides) {
    return RoundedCodes{kernels,
                        call.operands[codes],
                        scales_of_blocks(call.operands[codes + 1]),
                        *call.operands[codes + 2].as<const float>(),
                        divides,
                        result.dtype};
  };
  const RoundedCodes x = side(0, true), weight = side(3, false);
  const std::int64_t rows = x.codes.size[0], depth = x.codes.size[1], columns = weight.codes.size[0];
  auto* const wide = reinterpret_cast<float*>(call.scratch.data());
  call.threads.run(rows, [&](std::int64_t row, int) { x.widen(row, 0, depth, wide + row * depth); });
  const std::int64_t tiles = (columns + kTileColumns - 1) / kTileColumns;
  call.threads.run(tiles * ((rows + kTileRows - 1) / kTileRows), [&](std::int64_t index, int) {
    const std::int64_t first_column = index % tiles * kTileColumns, first_row = index / tiles * kTileRows;
    const std::int64_t tile_columns = std::min(kTileColumns, columns - first_column);
    const std::int64_t tile_rows = std::min(kTileRows, rows - first_row);
    float tile[kTileColumns][kTileDepth] = {};
    Quad sums[kTileRows][kTileColumns] = {};
    for (std::int64_t k = 0; k < depth; k += kTileDepth) {
      const std::int64_t count = std::min(kTileDepth, depth - k);
      for (std::int64_t c = 0; c < tile_columns; ++c) weight.widen(first_column + c, k, count, tile[c]);
      add_in_order(wide + first_row * depth + k, depth, tile, tile_rows, count, sums);
    }
    for (std::int64_t row = 0; row < tile_rows; ++row)
      for (std::int64_t c = 0; c < tile_columns; ++c) {
        const Quad& sum = sums[row][c];
        float product = x.rounded((sum[0] + sum[2]) + (sum[1] + sum[3]));
        if (bias.present()) product += load_float(bias.dtype, bias.data, first_column + c);
        store_float(result.dtype, result.data, (first_row + row) * columns + first_column + c, product);
      }
  });
}

void run(const ScaledLinearKernels& kernels, const KernelCall& call) {
  const bool rounds = call.attributes.at("intermediate").word() == "output_dtype";
  rounds ? run_rounded(kernels, call) : run_unrounded(kernels, call);
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, linear_nvfp4) {
  using namespace weft::cpu;
  registry.add(scaled_linear_kernel<run>("linear_nvfp4", supports));
}
