#pragma once

// linear_int8 on one panel with the tiles of WEFT_TILES, for kinds with groups of 32 k. The bits are those of
// linear_int8_skeleton.h: the sum of a group is an exact integer, and is scaled and added in the same order.
//
// A block of the panel is unpacked to tiles of signed codes and f32 scales, once for all rows, so zero points are in
// the codes. For 16 rows, the sums of eight groups are stored, then scaled with vectors: tiles and wide vectors share a
// port while they are mixed, and the sums of more groups would not stay in L1. A tile is stored some products after its
// own, because a store right after it waits for it.

#include WEFT_TILES
#include WEFT_VECTORS

#include "kernels/cpu/lib/block_codes.h"
#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/cpu/lib/panel_output.h"

namespace weft::cpu {
namespace {

constexpr std::int64_t kInt8TilePrefetch = 4096;
constexpr int kTileRows = 16;
constexpr int kPhaseGroups = 8;
// 32 KB of codes.
constexpr int kBlockGroups = 32;
constexpr int kTileHalves = 2;  // of the 32 columns
static_assert(kLanes == 16);

// Signed codes [groups][halves][8][16 columns][4], scales and minimums [groups][32].
struct UnpackedGroups {
  alignas(64) std::int8_t codes[kBlockGroups][kTileHalves][512];
  alignas(64) float scale[kBlockGroups][kPanelColumns];
  alignas(64) float minimum[kBlockGroups][kPanelColumns];
};

// [groups of a phase][halves][16 rows][16 columns]
struct PhaseSums {
  alignas(64) std::int32_t sums[kPhaseGroups][kTileHalves][kTileRows * 16];
};

template <PanelKind kind>
void unpack_groups(const std::byte* panel, std::int64_t first, std::int64_t count, UnpackedGroups& to) {
  constexpr BlockPanel block = block_panel(kind);
  const Codes codebook = load_codebook<kind>();
  for (std::int64_t g = 0; g < count; ++g) {
    const std::int64_t k = (first + g) * kGroupDepth, in_record = k % block.depth;
    const std::byte* record = panel + k / block.depth * record_bytes(block);
    const std::byte* codes = record + code_offset(block) + in_record / kGroupDepth * group_code_bytes(block);
    if (in_record == 0)
      for (std::int64_t i = 0; i < code_offset(block); i += 64) __builtin_prefetch(record + kInt8TilePrefetch + i);
    for (std::int64_t i = 0; i < group_code_bytes(block); i += 64) __builtin_prefetch(codes + kInt8TilePrefetch + i);
    for (int n = 0; n < kTileHalves; ++n) {
      const Scales scales =
          scales_of_group<kind>(record, in_record / block.group, n, record_scales<kind>(record, 0, n));
      store_floats(to.scale[g] + n * kLanes, scales.scale);
      if constexpr (block.minimums) store_floats(to.minimum[g] + n * kLanes, scales.minimum);
      WEFT_UNROLL for (int step = 0; step < kGroupDepth / 4; ++step)
          store_codes(to.codes[g][n] + step * kVectorBytes,
                      subtract_bytes(codes_of_step<kind>(codes, step, n, codebook), block.zero_code));
    }
  }
}

// Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 weights.
inline TileShapes int8_tile_shapes(std::int64_t rows) {
  TileShapes shapes;
  for (int tile = 0; tile < 4; ++tile) set_tile_shape(shapes, tile, rows, 64);
  for (int tile = 4; tile < 6; ++tile) set_tile_shape(shapes, tile, rows, kGroupDepth);
  for (int tile = 6; tile < 8; ++tile) set_tile_shape(shapes, tile, kGroupDepth / 4, 64);
  return shapes;
}

// tile `sum` = rows of tile `a` times a half of a group, which is loaded to tile `b`.
template <int sum, int a, int b>
WEFT_VECTOR void group_product(const std::int8_t* weight) {
  tile_load<b>(weight, 64);
  tile_zero<sum>();
  tile_dot_i8<sum, a, b>();
}

// The sums of `groups` groups from `first` of the unpacked ones on, of rows of codes.
inline void phase_products(const UnpackedGroups& weight, int first, int groups, const std::int8_t* codes,
                           std::int64_t stride, PhaseSums& to) {
  int g = 0;
  for (; g + 2 <= groups; g += 2) {
    const auto* even = weight.codes[first + g];
    const auto* odd = weight.codes[first + g + 1];
    tile_load<4>(codes + g * kGroupDepth, stride);
    group_product<0, 4, 6>(even[0]);
    if (g > 0) tile_store<2>(to.sums[g - 1][0], 64);
    group_product<1, 4, 7>(even[1]);
    if (g > 0) tile_store<3>(to.sums[g - 1][1], 64);
    tile_load<5>(codes + (g + 1) * kGroupDepth, stride);
    group_product<2, 5, 6>(odd[0]);
    tile_store<0>(to.sums[g][0], 64);
    group_product<3, 5, 7>(odd[1]);
    tile_store<1>(to.sums[g][1], 64);
  }
  if (g > 0) {
    tile_store<2>(to.sums[g - 1][0], 64);
    tile_store<3>(to.sums[g - 1][1], 64);
  }
  if (g == groups) return;
  tile_load<4>(codes + g * kGroupDepth, stride);
  group_product<0, 4, 6>(weight.codes[first + g][0]);
  group_product<1, 4, 7>(weight.codes[first + g][1]);
  tile_store<0>(to.sums[g][0], 64);
  tile_store<1>(to.sums[g][1], 64);
}

// f [16][32] += scaled sums, in the order of groups. `scale` and `term` are [groups][16 rows].
template <PanelKind kind>
void scale_phase(const UnpackedGroups& weight, int first, int groups, const PhaseSums& sums, const float* scale,
                 const float* term, float* f) {
  for (int n = 0; n < kTileHalves; ++n) {
    Floats total[kTileRows];
    WEFT_UNROLL for (int r = 0; r < kTileRows; ++r) total[r] = load_floats(f + r * kPanelColumns + n * kLanes);
    for (int g = 0; g < groups; ++g) {
      const Floats d = load_floats(weight.scale[first + g] + n * kLanes);
      const float *s = scale + g * kTileRows, *z = term + g * kTileRows;
      const std::int32_t* from = sums.sums[g][n];
      WEFT_UNROLL for (int r = 0; r < kTileRows; ++r) {
        total[r] = fused_multiply_add(to_floats(load_codes(from + r * 16)), multiply(d, spread(s[r])), total[r]);
        if constexpr (has_minimums(kind))
          total[r] = fused_multiply_add(load_floats(weight.minimum[first + g] + n * kLanes), spread(z[r]), total[r]);
      }
    }
    WEFT_UNROLL for (int r = 0; r < kTileRows; ++r) store_floats(f + r * kPanelColumns + n * kLanes, total[r]);
  }
}

// Adds a block of groups for rows [first_row, first_row + rows), which are groups of 16 or fewer than that.
template <PanelKind kind>
void add_block(const UnpackedGroups& weight, std::int64_t first_group, std::int64_t groups, const Int8TileRows& x,
               std::int64_t first_row, std::int64_t rows, float* sums) {
  const TileShapes shapes = int8_tile_shapes(rows < kTileRows ? rows : kTileRows);
  const TileScope scope(shapes);
  PhaseSums phase;
  for (std::int64_t row = first_row; row < first_row + rows; row += kTileRows) {
    for (std::int64_t g = 0; g < groups; g += kPhaseGroups) {
      const int count = static_cast<int>(groups - g < kPhaseGroups ? groups - g : kPhaseGroups);
      const std::int64_t at = row * x.groups + (first_group + g) * kTileRows;
      phase_products(weight, static_cast<int>(g), count,
                     x.codes + row * x.code_stride + (first_group + g) * kGroupDepth, x.code_stride, phase);
      scale_phase<kind>(weight, static_cast<int>(g), count, phase, x.scale + at, x.term + at,
                        sums + row * kPanelColumns);
    }
  }
}

template <PanelKind kind>
void int8_tiles_of_kind(const std::byte* panel, const Int8TileRows& x, const PanelOutput& output) {
  alignas(64) float sums[kInt8TileRowLimit * kPanelColumns];
  UnpackedGroups weight;
  const std::int64_t whole = x.rows / kTileRows * kTileRows;
  __builtin_memset(
      sums, 0,
      static_cast<unsigned long>((x.rows + kTileRows - 1) / kTileRows * kTileRows) * kPanelColumns * sizeof(float));
  for (std::int64_t g = 0; g < x.groups; g += kBlockGroups) {
    const std::int64_t count = x.groups - g < kBlockGroups ? x.groups - g : kBlockGroups;
    unpack_groups<kind>(panel, g, count, weight);
    if (whole > 0) add_block<kind>(weight, g, count, x, 0, whole, sums);
    if (whole < x.rows) add_block<kind>(weight, g, count, x, whole, x.rows - whole, sums);
  }
  store_rows(sums, 0, x.rows, output);
}

template <PanelKind... kinds>
void int8_tiles_among(Kinds<kinds...>, PanelKind kind, const std::byte* panel, const Int8TileRows& x,
                      const PanelOutput& output) {
  const auto run = [&]<PanelKind one>() __attribute__((always_inline)) {
    if constexpr (block_panel(one).group == kGroupDepth)
      if (kind == one) int8_tiles_of_kind<one>(panel, x, output);
  };
  (run.template operator()<kinds>(), ...);
}

void int8_tiles_panel(PanelKind kind, const std::byte* panel, const Int8TileRows& x, const PanelOutput& output) {
  int8_tiles_among(BlockKinds(), kind, panel, x, output);
}

}  // namespace
}  // namespace weft::cpu
