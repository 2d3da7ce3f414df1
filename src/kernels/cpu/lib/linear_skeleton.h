#pragma once

// linear on one panel, with the operations of WEFT_VECTORS.
//
// The depth is processed in blocks of 128 k. A block of weights that is not f32 is widened (dequantized as d * q + m,
// with two roundings) into 16 KB on the stack, once for up to 128 rows. Another 16 KB keep the sums between the blocks.
// Each output is one chain of multiply-adds in k order in every tile, so a row's bits never depend on the other rows.
// bf16 rows times bf16 weights have the order of AMX tiles instead, so that all instruction sets with fused
// multiply-adds have the bits of AMX.

#include WEFT_VECTORS

#include "kernels/cpu/lib/block_codes.h"
#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/cpu/lib/panel_output.h"

namespace weft::cpu {
namespace {

constexpr std::int64_t kBlockDepth = 128;
constexpr std::int64_t kOrderDepth = 32;  // of an AMX tile

// The bytes of kNf4Values (tensor/group_blocks.h), the lowest byte of all values first.
constexpr std::uint8_t kNf4Bytes[4][16] = {
    {0x00, 0xb1, 0x30, 0xa0, 0x4d, 0x3f, 0x71, 0x00, 0xff, 0xe3, 0xdd, 0x3a, 0xb8, 0xab, 0xb3, 0x00},
    {0x00, 0x39, 0x6b, 0x32, 0xa2, 0x35, 0x78, 0x00, 0xfa, 0xca, 0x04, 0x03, 0xa4, 0x07, 0x13, 0x00},
    {0x80, 0x32, 0x06, 0xca, 0x91, 0x3d, 0xba, 0x00, 0xa2, 0x24, 0x7c, 0xad, 0xe1, 0x10, 0x39, 0x80},
    {0xbf, 0xbf, 0xbf, 0xbe, 0xbe, 0xbe, 0xbd, 0x00, 0x3d, 0x3e, 0x3e, 0x3e, 0x3e, 0x3f, 0x3f, 0x3f},
};

// Widens 32 k of a record of e4m3 codes.
template <PanelKind kind>
void widen_e4m3_group(const std::byte* record, const std::byte* codes, float* to) {
  for (int n = 0; n < kPanelVectors; ++n, to += kLanes) {
    const Floats scale = record_scales<kind>(record, 0, n).scale;
    WEFT_UNROLL for (int step = 0; step < kGroupDepth / 4; ++step) {
      const BfloatPairs pairs = e4m3_bfloats(codes_of_step<kind>(codes, step, n, zero_codes()));
      float* column = to + 4 * step * kPanelColumns;
      store_floats(column, multiply(scale, even_bfloats(pairs.even)));
      store_floats(column + kPanelColumns, multiply(scale, even_bfloats(pairs.odd)));
      store_floats(column + 2 * kPanelColumns, multiply(scale, odd_bfloats(pairs.even)));
      store_floats(column + 3 * kPanelColumns, multiply(scale, odd_bfloats(pairs.odd)));
    }
  }
}

// Widens 32 k of a record of nf4 codes, whose values are put together from four look-ups.
template <PanelKind kind>
void widen_nf4_group(const std::byte* record, const std::byte* codes, float* to) {
  constexpr int steps = kGroupDepth / 4;
  Codes tables[4];
  WEFT_UNROLL for (int i = 0; i < 4; ++i) tables[i] = load_table(kNf4Bytes[i]);
  for (int n = 0; n < kPanelVectors; ++n, to += kLanes) {
    const Floats scale = record_scales<kind>(record, 0, n).scale;
    WEFT_UNROLL for (int step = 0; step < steps; ++step) {
      const Codes code = codes_of_step<kind>(codes, step, n, tables[0]);
      Codes planes[4];
      WEFT_UNROLL for (int i = 0; i < 4; ++i) planes[i] = look_up(tables[i], code);
      const auto put = [&](int k, Codes a, Codes b, Codes c, Codes d) __attribute__((always_inline)) {
        const Codes bits = either(either(a, shift_left<8>(b)), either(shift_left<16>(c), shift_left<24>(d)));
        store_floats(to + (4 * step + k) * kPanelColumns, multiply(scale, as_floats(bits)));
      };
      put(0, byte<0>(planes[0]), byte<0>(planes[1]), byte<0>(planes[2]), byte<0>(planes[3]));
      put(1, byte<1>(planes[0]), byte<1>(planes[1]), byte<1>(planes[2]), byte<1>(planes[3]));
      put(2, byte<2>(planes[0]), byte<2>(planes[1]), byte<2>(planes[2]), byte<2>(planes[3]));
      put(3, byte<3>(planes[0]), byte<3>(planes[1]), byte<3>(planes[2]), byte<3>(planes[3]));
    }
  }
}

// Widens 32 k of a record to f32 [32][32], from group `group` of the record on.
template <PanelKind kind>
void widen_group(const std::byte* record, std::int64_t group, const std::byte* codes, float* to) {
  constexpr BlockPanel block = block_panel(kind);
  constexpr int steps = block.group / 4;
  constexpr bool is_whole = block.scale_depth == block.depth;
  const Codes codebook = load_codebook<kind>();
  for (int n = 0; n < kPanelVectors; ++n) {
    for (int g = 0; g < kGroupDepth / block.group; ++g) {
      const Scales scales =
          scales_of_group<kind>(record, group + g, n, record_scales<kind>(record, is_whole ? 0 : g, n));
      float* column = to + g * block.group * kPanelColumns + n * kLanes;
      const auto put = [&](int k, Codes code) __attribute__((always_inline)) {
        if constexpr (block.minimums)
          store_floats(column + k * kPanelColumns, add(multiply(scales.scale, to_floats(code)), scales.minimum));
        else
          store_floats(column + k * kPanelColumns, multiply(scales.scale, to_floats(subtract(code, block.zero_code))));
      };
      WEFT_UNROLL for (int step = 0; step < steps; ++step) {
        const Codes x = codes_of_step<kind>(codes, g * steps + step, n, codebook);
        put(4 * step, byte<0>(x)), put(4 * step + 1, byte<1>(x));
        put(4 * step + 2, byte<2>(x)), put(4 * step + 3, byte<3>(x));
      }
    }
  }
}

WEFT_VECTOR void prefetch_bytes(const std::byte* from, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + kPrefetchBytes + i, 0, kIntoSecondCache);
}

template <PanelKind kind>
void widen_groups(const std::byte* panel, std::int64_t first_k, std::int64_t depth, float* to) {
  constexpr BlockPanel block = block_panel(kind);
  constexpr std::int64_t bytes = group_code_bytes(block);
  for (std::int64_t k = first_k; k < first_k + depth; k += kGroupDepth, to += kGroupDepth * kPanelColumns) {
    const std::byte* record = panel + k / block.depth * record_bytes(block);
    const std::int64_t in_record = k % block.depth;
    const std::byte* codes = record + code_offset(block) + in_record / kGroupDepth * bytes;
    if (in_record == 0) prefetch_bytes(record, code_offset(block));
    prefetch_bytes(codes, bytes);
    if constexpr (block.codebook == Codebook::nf4)
      widen_nf4_group<kind>(record, codes, to);
    else if constexpr (block.codebook == Codebook::e4m3)
      widen_e4m3_group<kind>(record, codes, to);
    else
      widen_group<kind>(record, in_record / block.group, codes, to);
  }
}

template <PanelKind... kinds>
void widen_groups_among(Kinds<kinds...>, PanelKind kind, const std::byte* panel, std::int64_t first_k,
                        std::int64_t depth, float* to) {
  ((kind == kinds ? widen_groups<kinds>(panel, first_k, depth, to) : void()), ...);
}

void widen_halves(const std::byte* panel, std::int64_t first_k, std::int64_t depth, float* to) {
  const std::byte* from = panel + first_k * kPanelColumns * 2;
  for (std::int64_t k = 0; k < depth; ++k, from += kPanelColumns * 2, to += kPanelColumns) {
    prefetch_bytes(from, kPanelColumns * 2);
    WEFT_UNROLL for (int n = 0; n < kPanelVectors; ++n)
        store_floats(to + n * kLanes, load_halves(from + n * kLanes * 2));
  }
}

void widen_bfloat_pairs(const std::byte* panel, std::int64_t first_k, std::int64_t depth, float* to) {
  const std::byte* from = panel + first_k / 2 * kPanelColumns * 4;
  for (std::int64_t k = 0; k < depth; k += 2, from += kPanelColumns * 4, to += 2 * kPanelColumns) {
    prefetch_bytes(from, kPanelColumns * 4);
    WEFT_UNROLL for (int n = 0; n < kPanelVectors; ++n) {
      const Codes pairs = load_codes(from + n * kLanes * 4);
      store_floats(to + n * kLanes, even_bfloats(pairs));
      store_floats(to + kPanelColumns + n * kLanes, odd_bfloats(pairs));
    }
  }
}

// The weights [first_k, first_k + depth) of the panel as f32 [depth][32]: in place if they are f32, otherwise in
// `block`.
const float* wide_weights(PanelKind kind, const std::byte* panel, std::int64_t first_k, std::int64_t depth,
                          float* block) {
  if (kind == PanelKind::f32) return reinterpret_cast<const float*>(panel) + first_k * kPanelColumns;
  if (kind == PanelKind::f16) widen_halves(panel, first_k, depth, block);
  if (kind == PanelKind::bf16) widen_bfloat_pairs(panel, first_k, depth, block);
  if (is_group_kind(kind)) {
    widen_groups_among(BlockKinds(), kind, panel, first_k, depth, block);
    widen_groups_among(RealKinds(), kind, panel, first_k, depth, block);
  }
  return block;
}

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

void linear_bfloat_panel(const std::byte* panel, const BfloatRows& x, const PanelOutput& output) {
  alignas(64) float block[kBlockDepth * kPanelColumns];
  alignas(64) float sums[kFloatRowLimit * kPanelColumns];
  alignas(64) float wide[kFloatTileRows * kBlockDepth];
  __builtin_memset(sums, 0, static_cast<unsigned long>(x.rows * kPanelColumns) * sizeof(float));
  {
    const SubnormalsAsZeros scope;
    for (std::int64_t k = 0; k < x.depth; k += kBlockDepth) {
      const std::int64_t depth = x.depth - k < kBlockDepth ? x.depth - k : kBlockDepth;
      if (x.rows <= kFewOrderedRows) {
        const int rows = static_cast<int>(x.rows);
        widen_tile_rows(x, 0, rows, k, depth, wide);
        ordered_pairs_tiles<kFewOrderedRows>(rows, panel + k / 2 * kPanelColumns * 4, depth, wide, sums);
        continue;
      }
      widen_bfloat_pairs(panel, k, depth, block);
      for (std::int64_t row = 0; row < x.rows; row += kFloatTileRows) {
        const int rows = static_cast<int>(x.rows - row < kFloatTileRows ? x.rows - row : kFloatTileRows);
        widen_tile_rows(x, row, rows, k, depth, wide);
        ordered_tiles<kFloatTileRows>(rows, block, depth, wide, sums + row * kPanelColumns);
      }
    }
  }
  store_rows(sums, 0, x.rows, output);
}

constexpr BfloatVariant kBfloatOrdered = {linear_bfloat_panel, kFloatRowLimit};
#else
constexpr BfloatVariant kBfloatOrdered = {nullptr, 0};
#endif

constexpr LinearVariant kLinearVariant = {linear_panel, widen, kBfloatOrdered, {nullptr, 0}};

}  // namespace
}  // namespace weft::cpu
