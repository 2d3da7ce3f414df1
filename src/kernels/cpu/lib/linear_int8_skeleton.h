#pragma once

// linear_int8 on one panel, with the operations of WEFT_VECTORS.
//
// Many rows are multiplied block by block (linear_int8_blocks.h), few straight from the panel: a tile of rows x vectors
// keeps its f32 sums for the whole depth and its integer sums for a group. Tiles are as large as the registers allow: 4
// rows x 2 vectors, or one or two rows x 4 vectors. With 16 registers the f32 sums of the former are on the stack and
// are read and written once per group. Codes of any number of bits are unpacked to bytes in registers, once for all
// rows of the tile. The first tile of a panel finds it not yet in the caches, and prefetches ahead.

#include WEFT_VECTORS

#include "kernels/cpu/lib/linear_int8_blocks.h"
#include "kernels/cpu/lib/panel_output.h"

namespace weft::cpu {
namespace {

constexpr int kInt8TileRows = 4;

// Whether the scales of a record are loaded once for many groups. In a record of one group they are loaded after its
// codes are multiplied, so that they take no registers before.
static constexpr bool loads_scales_first(const BlockPanel& block) {
  return block.scale_depth == block.depth && block.depth > kGroupDepth;
}

// f += the products of 32 k. `weight` is at the tile's first column; `group` is the first group of the 32 k in the
// record. `whole` are the scales of the record if they are loaded first.
template <PanelKind kind, int rows, int vectors>
WEFT_VECTOR void add_groups(Floats (&f)[rows][vectors], const std::byte* record, const Scales (&whole)[vectors],
                            const std::byte* weight, std::int64_t group, int first_vector, const TileRows& x) {
  constexpr BlockPanel block = block_panel(kind);
  const Codes codebook = load_codebook<kind>();
  const auto codes = [&](int step, int n) __attribute__((always_inline)) {
    return codes_of_step<kind>(weight, step, n, codebook);
  };
  WEFT_UNROLL for (int g = 0; g < kGroupDepth / block.group; ++g) {
    const auto scales = [&](int n) __attribute__((always_inline)) {
      const int vector = first_vector + n;
      const Scales own = loads_scales_first(block)
                             ? whole[n]
                             : record_scales<kind>(record, g * block.group / block.scale_depth, vector);
      return scales_of_group<kind>(record, group + g, vector, own);
    };
    add_group<kCodeForm<kind>>(f, g, x, codes, scales);
  }
}

template <PanelKind kind, int rows, int vectors, bool cold>
__attribute__((noinline)) void tile(const std::byte* panel, int first_vector, const Int8Rows& all,
                                    std::int64_t first_row, float* sums, std::int64_t sums_stride) {
  constexpr BlockPanel block = block_panel(kind);
  constexpr int groups = kGroupDepth / block.group;
  constexpr int scale_lines = (code_offset(block) + 63) / 64, code_lines = group_code_bytes(block) / 64;
  TileRows x = rows_from<kCodeForm<kind>>(all, first_row);
  Floats f[rows][vectors];
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) f[r][n] = zero_floats();

  for (std::int64_t k = 0; k < all.groups * kGroupDepth; k += block.depth, panel += record_bytes(block)) {
    if constexpr (cold)
      WEFT_UNROLL for (int i = 0; i < scale_lines; ++i)
          __builtin_prefetch(panel + kPrefetchBytes + i * 64, 0, kIntoSecondCache);
    Scales whole[vectors];
    if constexpr (loads_scales_first(block))
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) whole[n] = record_scales<kind>(panel, 0, first_vector + n);
    const std::byte* weight = panel + code_offset(block) + first_vector * kVectorBytes;
    for (int group = 0; group < block.depth / block.group; group += groups, weight += group_code_bytes(block)) {
      if constexpr (cold)
        WEFT_UNROLL for (int i = 0; i < code_lines; ++i)
            __builtin_prefetch(weight + kPrefetchBytes + i * 64, 0, kIntoSecondCache);
      add_groups<kind, rows, vectors>(f, panel, whole, weight, group, first_vector, x);
      next_group_depth<kCodeForm<kind>>(x);
    }
  }
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n)
      store_floats(sums + r * sums_stride + (first_vector + n) * kLanes, f[r][n]);
}

// All 32 columns for `rows` rows.
template <PanelKind kind, int rows>
void tiles_of_rows(int row_count, bool cold, const std::byte* panel, const Int8Rows& x, std::int64_t first_row,
                   float* sums, std::int64_t sums_stride) {
  if constexpr (rows > 1) {
    if (row_count < rows) {
      tiles_of_rows<kind, rows - 1>(row_count, cold, panel, x, first_row, sums, sums_stride);
      return;
    }
  }
  constexpr int wanted = rows <= 2 ? 4 : 2;
  constexpr int vectors = wanted < kPanelVectors ? wanted : kPanelVectors;
  for (int first = 0; first < kPanelVectors; first += vectors) {
    if (cold && first == 0)
      tile<kind, rows, vectors, true>(panel, first, x, first_row, sums, sums_stride);
    else
      tile<kind, rows, vectors, false>(panel, first, x, first_row, sums, sums_stride);
  }
}

template <PanelKind kind>
void panel_of_kind(const std::byte* panel, const Int8Rows& x, const PanelOutput& output) {
  if constexpr (kGainsFromBlocks<kind>)
    if (x.rows >= kLeastRowsOfBlocks) return panel_by_blocks<kind>(panel, x, output);
  const bool direct = is_plain(output);
  float block[kInt8TileRows * kPanelColumns];
  for (std::int64_t row = 0; row < x.rows; row += kInt8TileRows) {
    const int rows = static_cast<int>(x.rows - row < kInt8TileRows ? x.rows - row : kInt8TileRows);
    if (direct) {
      tiles_of_rows<kind, kInt8TileRows>(rows, row == 0, panel, x, row, plain_row(output, row), output.row_stride / 4);
    } else {
      tiles_of_rows<kind, kInt8TileRows>(rows, row == 0, panel, x, row, block, kPanelColumns);
      store_rows(block, row, rows, output);
    }
  }
}

template <PanelKind... kinds>
void panel_among(Kinds<kinds...>, PanelKind kind, const std::byte* panel, const Int8Rows& x,
                 const PanelOutput& output) {
  ((kind == kinds ? panel_of_kind<kinds>(panel, x, output) : void()), ...);
}

void linear_int8_panel(PanelKind kind, const std::byte* panel, const Int8Rows& x, const PanelOutput& output) {
  panel_among(BlockKinds(), kind, panel, x, output);
}

constexpr LinearInt8Variant kLinearInt8Variant = {kWideDot ? TermForm::whole : TermForm::pairs, linear_int8_panel,
                                                  nullptr};

}  // namespace
}  // namespace weft::cpu
