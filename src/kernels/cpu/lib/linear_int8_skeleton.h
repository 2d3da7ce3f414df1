#pragma once

// linear_int8 on one panel, with the operations of WEFT_VECTORS.
//
// A tile of rows x vectors keeps its f32 sums for the whole depth and its integer sums for a group. Tiles are as large
// as the registers allow: 4 rows x 2 vectors, or one or two rows x 4 vectors. With 16 registers the f32 sums of the
// former are on the stack and are read and written once per group. Each row's result is the same sequence of operations
// in every tile. The first tile of a panel finds it not yet in the caches, and prefetches ahead.

#include WEFT_VECTORS

#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/cpu/lib/panel_output.h"

namespace weft::cpu {
namespace {

// Prefetching 4 to 8 KB ahead reads memory up to 20 % faster than no prefetching (measured on Zen 5).
constexpr int kPrefetchBytes = 4096;
constexpr int kInt8TileRows = 4;

// The integer sums of one row and vector over a group. Without wide dots an 8-bit weight is split into two nibbles, so
// that the sums of a whole group fit 16 bits for any codes: 8 steps of at most 2 * 15 * 128.
template <PanelKind kind>
struct GroupSum {
  static constexpr bool split = code_bits(kind) == 8 && !kWideDot;
  Codes low;
  Codes high;

  WEFT_VECTOR GroupSum start(const std::byte* term) {
    const Codes zero_point = has_minimums(kind) ? zero_codes() : spread_four(term);
    return split ? GroupSum{zero_codes(), zero_point} : GroupSum{zero_point, zero_point};
  }
  WEFT_VECTOR Floats total(const GroupSum& sum) {
    if constexpr (split) return to_floats(whole_dot(sum.low, sum.high));
    return to_floats(whole_dot(sum.low));
  }
};

// Adds the codes of a group, [8 steps of 4 k][32 columns][4] (4-bit: two steps share their bytes).
template <PanelKind kind, int rows, int vectors>
WEFT_VECTOR void add_group(GroupSum<kind> (&sum)[rows][vectors], const std::byte* weight, const std::int8_t* codes,
                           std::int64_t code_stride) {
  constexpr int step_bytes = kPanelColumns * 4;
  constexpr int vector_bytes = kLanes * 4;
  if constexpr (code_bits(kind) == 4) {
    WEFT_UNROLL for (int octet = 0; octet < 4; ++octet) {
      Codes both[vectors], half[vectors];
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
        both[n] = load_codes(weight + octet * step_bytes + n * vector_bytes);
        half[n] = low_nibbles(both[n]);
      }
      WEFT_UNROLL for (int r = 0; r < rows; ++r) {
        const Codes x = spread_four(codes + r * code_stride + octet * 8);
        WEFT_UNROLL for (int n = 0; n < vectors; ++n) sum[r][n].low = dot(sum[r][n].low, half[n], x);
      }
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) half[n] = high_nibbles(both[n]);
      WEFT_UNROLL for (int r = 0; r < rows; ++r) {
        const Codes x = spread_four(codes + r * code_stride + octet * 8 + 4);
        WEFT_UNROLL for (int n = 0; n < vectors; ++n) sum[r][n].low = dot(sum[r][n].low, half[n], x);
      }
    }
  } else {
    WEFT_UNROLL for (int step = 0; step < 8; ++step) {
      Codes low[vectors], high[vectors];
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
        low[n] = load_codes(weight + step * step_bytes + n * vector_bytes);
        if constexpr (GroupSum<kind>::split) {
          high[n] = high_nibbles(low[n]);
          low[n] = low_nibbles(low[n]);
        }
      }
      WEFT_UNROLL for (int r = 0; r < rows; ++r) {
        const Codes x = spread_four(codes + r * code_stride + step * 4);
        WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
          sum[r][n].low = dot(sum[r][n].low, low[n], x);
          if constexpr (GroupSum<kind>::split) sum[r][n].high = dot(sum[r][n].high, high[n], x);
        }
      }
    }
  }
}

// `panel` points at the first record's d of the tile's columns; `weight_offset` is the distance from there to their
// codes.
template <PanelKind kind, int rows, int vectors, bool cold>
__attribute__((noinline)) void tile(const std::byte* panel, int first_vector, const Int8Rows& x, std::int64_t first_row,
                                    float* sums, std::int64_t sums_stride) {
  constexpr std::int64_t record = record_bytes(kind);
  const std::byte* scale_of_weight = panel + first_vector * kLanes * 2;
  const std::byte* weight = panel + record_head_bytes(kind) + first_vector * kLanes * 4;
  const std::int8_t* codes = x.codes + first_row * x.code_stride;
  const float* scale = x.scale + first_row * x.scale_stride;
  const std::byte* term = x.term + first_row * x.groups * 4;
  const std::int64_t code_stride = x.code_stride, scale_stride = x.scale_stride, term_stride = x.groups * 4;
  Floats f[rows][vectors];
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) f[r][n] = zero_floats();

  for (std::int64_t group = 0; group < x.groups; ++group) {
    if constexpr (cold)
      WEFT_UNROLL for (int i = 0; i < record; i += 64) __builtin_prefetch(scale_of_weight + kPrefetchBytes + i);
    GroupSum<kind> sum[rows][vectors];
    WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) sum[r][n] =
        GroupSum<kind>::start(term + r * term_stride);
    add_group<kind, rows, vectors>(sum, weight, codes, code_stride);

    Floats d[vectors], m[vectors];
    WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
      d[n] = load_halves(scale_of_weight + n * kLanes * 2);
      if constexpr (has_minimums(kind)) m[n] = load_halves(scale_of_weight + kPanelColumns * 2 + n * kLanes * 2);
    }
    WEFT_UNROLL for (int r = 0; r < rows; ++r) {
      const Floats s = spread(scale[r * scale_stride]);
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
        f[r][n] = fused_multiply_add(GroupSum<kind>::total(sum[r][n]), multiply(d[n], s), f[r][n]);
        if constexpr (has_minimums(kind))
          f[r][n] = fused_multiply_add(m[n], spread(*reinterpret_cast<const FourBytesFloat*>(term + r * term_stride)),
                                       f[r][n]);
      }
    }
    scale_of_weight += record, weight += record, codes += kGroupDepth, ++scale, term += 4;
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
  constexpr int panel_vectors = kPanelColumns / kLanes;
  constexpr int wanted = rows <= 2 ? 4 : 2;
  constexpr int vectors = wanted < panel_vectors ? wanted : panel_vectors;
  for (int first = 0; first < panel_vectors; first += vectors) {
    if (cold && first == 0)
      tile<kind, rows, vectors, true>(panel, first, x, first_row, sums, sums_stride);
    else
      tile<kind, rows, vectors, false>(panel, first, x, first_row, sums, sums_stride);
  }
}

template <PanelKind kind>
void panel_of_kind(const std::byte* panel, const Int8Rows& x, const PanelOutput& output) {
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

void linear_int8_panel(PanelKind kind, const std::byte* panel, const Int8Rows& x, const PanelOutput& output) {
  if (kind == PanelKind::q4_0)
    panel_of_kind<PanelKind::q4_0>(panel, x, output);
  else if (kind == PanelKind::q4_1)
    panel_of_kind<PanelKind::q4_1>(panel, x, output);
  else
    panel_of_kind<PanelKind::q8_0>(panel, x, output);
}

constexpr LinearInt8Variant kLinearInt8Variant = {kWideDot ? TermForm::whole : TermForm::pairs, linear_int8_panel};

}  // namespace
}  // namespace weft::cpu
