#pragma once

// bf16 rows times a bf16 panel with the tiles of WEFT_TILES. 32 k of a panel are two tiles of 16 columns as they are
// stored: rows of 64 bytes, 128 bytes apart.
//
// Two groups of 16 rows times two tiles of columns are summed at a time: four loads for four products. The weights of a
// block of depth are 32 KB at most and stay in L1, while rows are streamed from L2. Sums are in memory between blocks,
// which does not change their bits. The last group of rows overlaps the one before it, so that all groups have equally
// many rows. A depth that is not a multiple of 32 ends in a block of narrower tiles.

#include WEFT_TILES
#include WEFT_VECTORS

#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/cpu/lib/panel_output.h"
#include "kernels/cpu/lib/widened_weights.h"

namespace weft::cpu {
namespace {

constexpr std::int64_t kTileGroupRows = 16;
constexpr std::int64_t kTileDepth = 32;
// More rows of 1,536 k would not fit an L2 of 2 MB with the weights.
constexpr std::int64_t kTileRowLimit = 256;
// The depth of a block, if the depth is more than twice that.
constexpr std::int64_t kTileBlockDepth = 512;
constexpr std::int64_t kTileWeightBytes = kTileDepth * kPanelColumns * 2;
constexpr std::int64_t kTileSumStride = kPanelColumns * 4;
constexpr std::int64_t kTileGroupSums = kTileGroupRows * kPanelColumns;
// Of one group of rows, which is bound by reading the weights.
constexpr std::int64_t kFewRowsPrefetchBytes = 4096;

// Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 weights.
inline TileShapes bfloat_tile_shapes(std::int64_t rows, std::int64_t depth) {
  TileShapes shapes;
  for (int tile = 0; tile < 4; ++tile) set_tile_shape(shapes, tile, rows, 64);
  for (int tile = 4; tile < 6; ++tile) set_tile_shape(shapes, tile, rows, depth * 2);
  for (int tile = 6; tile < 8; ++tile) set_tile_shape(shapes, tile, depth / 2, 64);
  return shapes;
}

// The lines that come after the block's weights: those of the next panel are fetched to L2 while this one is
// multiplied, a few lines in each step.
struct PrefetchedLines {
  const std::byte* next;
  const std::byte* end;
  std::int64_t bytes_of_step;
};

// One or two groups of rows.
struct TileGroups {
  const std::uint16_t* x[2];
  std::int64_t x_stride;  // bytes
  float* sums;            // [groups][16][32]
};

template <int groups>
WEFT_VECTOR void start_tile_sums(const float* sums, bool is_first) {
  if (is_first) {
    tile_zero<0>(), tile_zero<1>();
    if constexpr (groups == 2) tile_zero<2>(), tile_zero<3>();
    return;
  }
  tile_load<0>(sums, kTileSumStride), tile_load<1>(sums + 16, kTileSumStride);
  if constexpr (groups == 2) {
    tile_load<2>(sums + kTileGroupSums, kTileSumStride);
    tile_load<3>(sums + kTileGroupSums + 16, kTileSumStride);
  }
}

template <int groups>
WEFT_VECTOR void store_tile_sums(float* sums) {
  tile_store<0>(sums, kTileSumStride), tile_store<1>(sums + 16, kTileSumStride);
  if constexpr (groups == 2) {
    tile_store<2>(sums + kTileGroupSums, kTileSumStride);
    tile_store<3>(sums + kTileGroupSums + 16, kTileSumStride);
  }
}

// Adds the products of `steps` times the depth of the tiles. `few` is for calls of one group.
template <int groups, bool few>
void add_tile_products(const TileGroups& rows, const std::byte* weight, std::int64_t steps, bool is_first,
                       PrefetchedLines& lines) {
  start_tile_sums<groups>(rows.sums, is_first);
  const std::uint16_t *first = rows.x[0], *second = rows.x[1];
  for (std::int64_t step = 0; step < steps; ++step, weight += kTileWeightBytes) {
    if constexpr (few)
      tile_load<4>(first, rows.x_stride);
    else
      tile_stream<4>(first, rows.x_stride);
    tile_load<6>(weight, kPanelColumns * 4);
    tile_load<7>(weight + 64, kPanelColumns * 4);
    if constexpr (groups == 2) tile_stream<5>(second, rows.x_stride);
    if constexpr (few) {
      WEFT_UNROLL for (int i = 0; i < kTileWeightBytes; i += 64) __builtin_prefetch(weight + kFewRowsPrefetchBytes + i);
    } else if (lines.next < lines.end) {
      for (std::int64_t i = 0; i < lines.bytes_of_step; i += 64) __builtin_prefetch(lines.next + i, 0, 2);
      lines.next += lines.bytes_of_step;
    }
    tile_dot_bf16<0, 4, 6>();
    tile_dot_bf16<1, 4, 7>();
    if constexpr (groups == 2) {
      tile_dot_bf16<2, 5, 6>();
      tile_dot_bf16<3, 5, 7>();
    }
    first += kTileDepth, second += kTileDepth;
  }
  store_tile_sums<groups>(rows.sums);
}

// The first row of a group.
inline std::int64_t first_tile_row(std::int64_t group, std::int64_t rows) {
  const std::int64_t last = rows > kTileGroupRows ? rows - kTileGroupRows : 0;
  return group * kTileGroupRows < last ? group * kTileGroupRows : last;
}

// The products of [k, k + depth) for all rows, where depth is whole tiles or less than one. `weight` are those of the
// block. The lines from `next` on are fetched meanwhile, as many as the block's weights are; null for none.
void add_tile_block(const std::byte* weight, const std::byte* next, const BfloatRows& x, std::int64_t k,
                    std::int64_t depth, float* sums) {
  const std::int64_t groups = (x.rows + kTileGroupRows - 1) / kTileGroupRows, pairs = (groups + 1) / 2;
  const std::int64_t rows = x.rows < kTileGroupRows ? x.rows : kTileGroupRows;
  const std::int64_t tile_depth = depth < kTileDepth ? depth : kTileDepth, steps = depth / tile_depth;
  const TileShapes shapes = bfloat_tile_shapes(rows, tile_depth);
  const TileScope scope(shapes);
  PrefetchedLines lines{next, next == nullptr ? next : next + steps * kTileWeightBytes,
                        (kTileWeightBytes / 64 + pairs - 1) / pairs * 64};
  for (std::int64_t group = 0; group < groups; group += 2) {
    const std::uint16_t* first = x.values + first_tile_row(group, x.rows) * x.stride + k;
    const std::uint16_t* second = x.values + first_tile_row(group + 1, x.rows) * x.stride + k;
    const TileGroups of_pair{{first, second}, x.stride * 2, sums + group * kTileGroupSums};
    if (groups == 1)
      add_tile_products<1, true>(of_pair, weight, steps, k == 0, lines);
    else if (group + 1 == groups)
      add_tile_products<1, false>(of_pair, weight, steps, k == 0, lines);
    else
      add_tile_products<2, false>(of_pair, weight, steps, k == 0, lines);
  }
}

// Sums of tiles are never subnormal, so the processor's own conversion has the same bits.
void store_tile_rows(const float* sums, std::int64_t first_row, std::int64_t rows, const PanelOutput& output) {
  if (output.kind != FloatKind::bf16 || output.columns != kPanelColumns || output.bias != nullptr)
    return store_rows(sums, first_row, rows, output);
  for (std::int64_t r = 0; r < rows; ++r, sums += kPanelColumns)
    for (int column = 0; column < kPanelColumns; column += kLanes)
      store_normal_bfloats(output.data + (first_row + r) * output.row_stride + column * 2, load_floats(sums + column));
}

// Blocks are equally deep, because a short one would load and store as many sums as a deep one.
inline std::int64_t tile_block_depth(std::int64_t depth) {
  if (depth <= 2 * kTileBlockDepth) return depth;
  const std::int64_t tiles = depth / kTileDepth, blocks = (depth + kTileBlockDepth - 1) / kTileBlockDepth;
  return (tiles + blocks - 1) / blocks * kTileDepth;
}

// Writes the sums of all rows.
void store_tile_sums_of_rows(const float* sums, const BfloatRows& x, const PanelOutput& output) {
  for (std::int64_t row = 0; row < x.rows; row += kTileGroupRows) {
    const std::int64_t rows = x.rows - row < kTileGroupRows ? x.rows - row : kTileGroupRows;
    const std::int64_t overlap = row - first_tile_row(row / kTileGroupRows, x.rows);
    store_tile_rows(sums + (row + overlap) * kPanelColumns, row, rows, output);
  }
}

void bfloat_tiles_panel(const std::byte* panel, const BfloatRows& x, const PanelOutput& output) {
  alignas(64) float sums[kTileRowLimit * kPanelColumns];
  const std::int64_t whole = x.depth / kTileDepth * kTileDepth;
  const std::int64_t block = tile_block_depth(whole);
  const auto add = [&](std::int64_t k, std::int64_t depth) __attribute__((always_inline)) {
    const std::byte* weight = panel + k / 2 * kPanelColumns * 4;
    add_tile_block(weight, weight + panel_bytes(PanelKind::bf16, x.depth), x, k, depth, sums);
  };
  for (std::int64_t k = 0; k < whole; k += block) add(k, whole - k < block ? whole - k : block);
  if (whole < x.depth) add(whole, x.depth - whole);
  store_tile_sums_of_rows(sums, x, output);
}

// Panels of blocks are whole tiles deep.
void rounded_tiles_panel(PanelKind kind, const std::byte* panel, const BfloatRows& x, const PanelOutput& output) {
  constexpr std::int64_t kWideDepth = 128;  // widened at a time
  alignas(64) float sums[kTileRowLimit * kPanelColumns];
  alignas(64) float wide[kWideDepth * kPanelColumns];
  alignas(64) std::byte weights[kTileBlockDepth / kTileDepth * kTileWeightBytes];
  for (std::int64_t k = 0; k < x.depth; k += kTileBlockDepth) {
    const std::int64_t depth = x.depth - k < kTileBlockDepth ? x.depth - k : kTileBlockDepth;
    for (std::int64_t i = 0; i < depth; i += kWideDepth)
      bfloat_weights(kind, panel, k + i, depth - i < kWideDepth ? depth - i : kWideDepth, wide,
                     weights + i * kPanelColumns * 2);
    add_tile_block(weights, nullptr, x, k, depth, sums);
  }
  store_tile_sums_of_rows(sums, x, output);
}

constexpr BfloatVariant kBfloatTiles = {bfloat_tiles_panel, kTileRowLimit};
constexpr RoundedVariant kRoundedTiles = {rounded_tiles_panel, kTileRowLimit};

}  // namespace
}  // namespace weft::cpu
