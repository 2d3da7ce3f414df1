#pragma once

// bf16 rows times a bf16 panel with the processor's dot of two bf16: one chain of those in k order for each output.

#include WEFT_VECTORS

#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/cpu/lib/panel_output.h"

namespace weft::cpu {
namespace {

constexpr std::int64_t kDotsPrefetchBytes = 4096;
constexpr int kDotVectors = kPanelColumns / kLanes;

// Sums [rows, 32] of x [rows, depth] and the panel [depth / 2][32][2].
template <int rows, int vectors>
__attribute__((noinline)) void bfloat_tile(const std::byte* panel, std::int64_t depth, const std::uint16_t* x,
                                           std::int64_t x_stride, float* sums) {
  Floats f[rows][vectors];
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) f[r][n] = zero_floats();
  for (std::int64_t k = 0; k < depth; k += 2, panel += kPanelColumns * 4, x += 2) {
    __builtin_prefetch(panel + kDotsPrefetchBytes);
    __builtin_prefetch(panel + kDotsPrefetchBytes + 64);
    Codes w[vectors];
    WEFT_UNROLL for (int n = 0; n < vectors; ++n) w[n] = load_codes(panel + n * kLanes * 4);
    WEFT_UNROLL for (int r = 0; r < rows; ++r) {
      const Codes pair = spread_four(x + r * x_stride);
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) f[r][n] = bfloat_dot(f[r][n], w[n], pair);
    }
  }
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n)
      store_floats(sums + r * kPanelColumns + n * kLanes, f[r][n]);
}

template <int rows>
void bfloat_tiles(int row_count, const std::byte* panel, std::int64_t depth, const std::uint16_t* x,
                  std::int64_t x_stride, float* sums) {
  if constexpr (rows > 1) {
    if (row_count < rows) {
      bfloat_tiles<rows - 1>(row_count, panel, depth, x, x_stride, sums);
      return;
    }
  }
  bfloat_tile<rows, kDotVectors>(panel, depth, x, x_stride, sums);
}

void bfloat_dots_panel(const std::byte* panel, const BfloatRows& x, const PanelOutput& output) {
  alignas(64) float sums[kFloatTileRows * kPanelColumns];
  for (std::int64_t row = 0; row < x.rows; row += kFloatTileRows) {
    const int rows = static_cast<int>(x.rows - row < kFloatTileRows ? x.rows - row : kFloatTileRows);
    bfloat_tiles<kFloatTileRows>(rows, panel, x.depth, x.values + row * x.stride, x.stride, sums);
    store_rows(sums, row, rows, output);
  }
}

constexpr BfloatVariant kBfloatDots = {bfloat_dots_panel, kFloatRowLimit};

}  // namespace
}  // namespace weft::cpu
