#pragma once

// linear on one panel, with the operations of WEFT_VECTORS.
//
// The depth is processed in blocks of 128 k. A block of weights that is not f32 is widened into 16 KB on the stack,
// once for up to 128 rows. Another 16 KB keep the sums between the blocks. Each output is one chain of multiply-adds in
// k order in every tile, so a row's bits never depend on the other rows. bf16 rows times bf16 weights have the order of
// AMX tiles instead, so that all instruction sets with fused multiply-adds have the bits of AMX.

#include WEFT_VECTORS

#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/cpu/lib/panel_output.h"
#include "kernels/cpu/lib/widened_weights.h"

namespace weft::cpu {
namespace {

constexpr std::int64_t kBlockDepth = 128;
constexpr std::int64_t kOrderDepth = 32;  // of an AMX tile

// sums [rows, 32] += x [rows, depth] times weights [depth][32].
template <int rows, int vectors>
__attribute__((noinline)) void float_tile(const float* weight, std::int64_t depth, const float* x,
                                          std::int64_t x_stride, float* sums) {
  Floats f[rows][vectors];
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) f[r][n] =
      load_floats(sums + r * kPanelColumns + n * kLanes);
  for (std::int64_t k = 0; k < depth; ++k, weight += kPanelColumns, ++x) {
    Floats w[vectors];
    WEFT_UNROLL for (int n = 0; n < vectors; ++n) w[n] = load_floats(weight + n * kLanes);
    WEFT_UNROLL for (int r = 0; r < rows; ++r) {
      const Floats value = spread(x[r * x_stride]);
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) f[r][n] = multiply_add(value, w[n], f[r][n]);
    }
  }
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n)
      store_floats(sums + r * kPanelColumns + n * kLanes, f[r][n]);
}

template <int rows>
void float_tiles(int row_count, const float* weight, std::int64_t depth, const float* x, std::int64_t x_stride,
                 float* sums) {
  if constexpr (rows > 1) {
    if (row_count < rows) {
      float_tiles<rows - 1>(row_count, weight, depth, x, x_stride, sums);
      return;
    }
  }
  constexpr int wanted = rows <= 3 ? 4 : 2;
  constexpr int vectors = wanted < kPanelVectors ? wanted : kPanelVectors;
  for (int first = 0; first < kPanelColumns; first += vectors * kLanes)
    float_tile<rows, vectors>(weight + first, depth, x, x_stride, sums + first);
}

void linear_panel(PanelKind kind, const std::byte* panel, const FloatRows& x, const PanelOutput& output) {
  alignas(64) float block[kBlockDepth * kPanelColumns];
  alignas(64) float sums[kFloatRowLimit * kPanelColumns];
  __builtin_memset(sums, 0, static_cast<unsigned long>(x.rows * kPanelColumns) * sizeof(float));
  for (std::int64_t k = 0; k < x.depth; k += kBlockDepth) {
    const std::int64_t depth = x.depth - k < kBlockDepth ? x.depth - k : kBlockDepth;
    const float* weight = wide_weights(kind, panel, k, depth, block);
    if (x.rounds_weights) round_to_bfloats(depth * kPanelColumns, block);
    for (std::int64_t row = 0; row < x.rows; row += kFloatTileRows) {
      const int rows = static_cast<int>(x.rows - row < kFloatTileRows ? x.rows - row : kFloatTileRows);
      float_tiles<kFloatTileRows>(rows, weight, depth, x.values + row * x.stride + k, x.stride,
                                  sums + row * kPanelColumns);
    }
  }
  store_rows(sums, 0, x.rows, output);
}

void widen(FloatKind kind, const std::byte* from, float* to, std::int64_t count) {
  const auto load = [kind](const void* p) __attribute__((always_inline)) {
    return kind == FloatKind::f32 ? load_floats(p) : kind == FloatKind::f16 ? load_halves(p) : load_bfloats(p);
  };
  const int element = kind == FloatKind::f32 ? 4 : 2;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store_floats(to + i, load(from + i * element));
  if (i == count) return;
  std::byte last[kLanes * 4] = {};
  float wide[kLanes];
  __builtin_memcpy(last, from + i * element, static_cast<unsigned long>((count - i) * element));
  store_floats(wide, load(last));
  __builtin_memcpy(to + i, wide, static_cast<unsigned long>(count - i) * sizeof(float));
}

#ifdef WEFT_FUSED_MULTIPLY_ADD
// The order of AMX tiles (amx_tiles.h): for each 32 k a chain of the even and one of the odd k, which are added to each
// other and then to the sum. Depths are even, and `x` has rows of kBlockDepth.

// sums [rows, 32] += x [rows, depth] times weights [depth][32].
template <int rows, int vectors>
__attribute__((noinline)) void ordered_tile(const float* weight, std::int64_t depth, const float* x, float* sums) {
  const auto chain = [&](std::int64_t first, std::int64_t end, Floats(&f)[rows][vectors])
      __attribute__((always_inline)) {
    WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) f[r][n] = zero_floats();
    for (std::int64_t k = first; k < end; k += 2) {
      Floats w[vectors];
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) w[n] = load_floats(weight + k * kPanelColumns + n * kLanes);
      WEFT_UNROLL for (int r = 0; r < rows; ++r) {
        const Floats value = spread(x[r * kBlockDepth + k]);
        WEFT_UNROLL for (int n = 0; n < vectors; ++n) f[r][n] = fused_multiply_add(value, w[n], f[r][n]);
      }
    }
  };
  for (std::int64_t k = 0; k < depth; k += kOrderDepth) {
    const std::int64_t end = depth - k < kOrderDepth ? depth : k + kOrderDepth;
    Floats even[rows][vectors], odd[rows][vectors];
    chain(k, end, even);
    chain(k + 1, end, odd);
    WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
      float* sum = sums + r * kPanelColumns + n * kLanes;
      store_floats(sum, add(load_floats(sum), add(even[r][n], odd[r][n])));
    }
  }
}

template <int rows>
void ordered_tiles(int row_count, const float* weight, std::int64_t depth, const float* x, float* sums) {
  if constexpr (rows > 1) {
    if (row_count < rows) return ordered_tiles<rows - 1>(row_count, weight, depth, x, sums);
  }
  constexpr int vectors = 2 < kPanelVectors ? 2 : kPanelVectors;
  for (int first = 0; first < kPanelColumns; first += vectors * kLanes)
    ordered_tile<rows, vectors>(weight + first, depth, x, sums + first);
}

// The same for few rows, with pairs of the panel. Weights are not widened in memory, and a row has two chains at a
// time, because one alone waits for each multiply-add.
template <int rows, int vectors>
__attribute__((noinline)) void ordered_pairs_tile(const std::byte* pairs, std::int64_t depth, const float* x,
                                                  float* sums) {
  for (std::int64_t k = 0; k < depth;) {
    const std::int64_t end = depth - k < kOrderDepth ? depth : k + kOrderDepth;
    Floats even[rows][vectors], odd[rows][vectors];
    WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) even[r][n] = odd[r][n] =
        zero_floats();
    for (; k < end; k += 2, pairs += kPanelColumns * 4) {
      prefetch_bytes(pairs, vectors * kLanes * 4);
      Codes w[vectors];
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) w[n] = load_codes(pairs + n * kLanes * 4);
      WEFT_UNROLL for (int r = 0; r < rows; ++r) {
        const Floats first = spread(x[r * kBlockDepth + k]), second = spread(x[r * kBlockDepth + k + 1]);
        WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
          even[r][n] = fused_multiply_add(first, even_bfloats(w[n]), even[r][n]);
          odd[r][n] = fused_multiply_add(second, odd_bfloats(w[n]), odd[r][n]);
        }
      }
    }
    WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
      float* sum = sums + r * kPanelColumns + n * kLanes;
      store_floats(sum, add(load_floats(sum), add(even[r][n], odd[r][n])));
    }
  }
}

constexpr int kFewOrderedRows = kLanes == 16 ? 6 : 3;  // as the registers allow

template <int rows>
void ordered_pairs_tiles(int row_count, const std::byte* pairs, std::int64_t depth, const float* x, float* sums) {
  if constexpr (rows > 1) {
    if (row_count < rows) return ordered_pairs_tiles<rows - 1>(row_count, pairs, depth, x, sums);
  }
  constexpr int wanted = rows == 1 ? 4 : 2;
  constexpr int vectors = wanted < kPanelVectors ? wanted : kPanelVectors;
  for (int first = 0; first < kPanelColumns; first += vectors * kLanes)
    ordered_pairs_tile<rows, vectors>(pairs + first * 4, depth, x, sums + first);
}

// Rows [first, first + rows) of x, [k, k + depth), to rows of kBlockDepth.
inline void widen_tile_rows(const BfloatRows& x, std::int64_t first, int rows, std::int64_t k, std::int64_t depth,
                            float* to) {
  for (int r = 0; r < rows; ++r)
    widen(FloatKind::bf16, reinterpret_cast<const std::byte*>(x.values + (first + r) * x.stride + k),
          to + r * kBlockDepth, depth);
}

// Adds the products of [k, k + depth) of all rows, with the weights as f32 [depth][32].
inline void add_ordered_block(const float* weight, const BfloatRows& x, std::int64_t k, std::int64_t depth,
                              float* sums) {
  alignas(64) float wide[kFloatTileRows * kBlockDepth];
  for (std::int64_t row = 0; row < x.rows; row += kFloatTileRows) {
    const int rows = static_cast<int>(x.rows - row < kFloatTileRows ? x.rows - row : kFloatTileRows);
    widen_tile_rows(x, row, rows, k, depth, wide);
    ordered_tiles<kFloatTileRows>(rows, weight, depth, wide, sums + row * kPanelColumns);
  }
}

void linear_bfloat_panel(const std::byte* panel, const BfloatRows& x, const PanelOutput& output) {
  alignas(64) float block[kBlockDepth * kPanelColumns];
  alignas(64) float sums[kFloatRowLimit * kPanelColumns];
  __builtin_memset(sums, 0, static_cast<unsigned long>(x.rows * kPanelColumns) * sizeof(float));
  {
    const SubnormalsAsZeros scope;
    for (std::int64_t k = 0; k < x.depth; k += kBlockDepth) {
      const std::int64_t depth = x.depth - k < kBlockDepth ? x.depth - k : kBlockDepth;
      if (x.rows <= kFewOrderedRows) {
        alignas(64) float wide[kFewOrderedRows * kBlockDepth];
        const int rows = static_cast<int>(x.rows);
        widen_tile_rows(x, 0, rows, k, depth, wide);
        ordered_pairs_tiles<kFewOrderedRows>(rows, panel + k / 2 * kPanelColumns * 4, depth, wide, sums);
        continue;
      }
      widen_bfloat_pairs(panel, k, depth, block);
      add_ordered_block(block, x, k, depth, sums);
    }
  }
  store_rows(sums, 0, x.rows, output);
}

// Weights are widened outside of the scope, so that they are the same in all variants.
void linear_rounded_panel(PanelKind kind, const std::byte* panel, const BfloatRows& x, const PanelOutput& output) {
  alignas(64) float block[kBlockDepth * kPanelColumns];
  alignas(64) float sums[kFloatRowLimit * kPanelColumns];
  __builtin_memset(sums, 0, static_cast<unsigned long>(x.rows * kPanelColumns) * sizeof(float));
  for (std::int64_t k = 0; k < x.depth; k += kBlockDepth) {
    const std::int64_t depth = x.depth - k < kBlockDepth ? x.depth - k : kBlockDepth;
    wide_weights(kind, panel, k, depth, block);
    round_to_bfloats(depth * kPanelColumns, block);
    const SubnormalsAsZeros scope;
    add_ordered_block(block, x, k, depth, sums);
  }
  store_rows(sums, 0, x.rows, output);
}

constexpr BfloatVariant kBfloatOrdered = {linear_bfloat_panel, kFloatRowLimit};
constexpr RoundedVariant kRoundedOrdered = {linear_rounded_panel, kFloatRowLimit};
#else
constexpr BfloatVariant kBfloatOrdered = {nullptr, 0};
constexpr RoundedVariant kRoundedOrdered = {nullptr, 0};
#endif

constexpr LinearVariant kLinearVariant = {linear_panel, widen,           kBfloatOrdered,
                                          {nullptr, 0}, kRoundedOrdered, {nullptr, 0}};

}  // namespace
}  // namespace weft::cpu
