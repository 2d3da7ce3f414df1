#pragma once

// The weights of a panel as f32, or rounded to bf16, with the operations of WEFT_VECTORS. Weights of block types are
// dequantized as d * q + m, with two roundings.

#include WEFT_VECTORS

#include "kernels/cpu/lib/block_codes.h"
#include "kernels/cpu/lib/linear_variant.h"

namespace weft::cpu {
namespace {

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

// Rounds f32 weights to bf16.
inline void round_to_bfloats(std::int64_t count, float* weights) {
  for (std::int64_t i = 0; i < count; i += kLanes)
    store_floats(weights + i, as_floats(shift_left<16>(bfloat_bits(load_floats(weights + i)))));
}

// The weights [first_k, first_k + depth) of a panel of blocks, rounded to bf16, as a panel of bf16 has them. `block`
// holds them as f32 meanwhile.
inline void bfloat_weights(PanelKind kind, const std::byte* panel, std::int64_t first_k, std::int64_t depth,
                           float* block, std::byte* to) {
  const float* weight = wide_weights(kind, panel, first_k, depth, block);
  for (std::int64_t k = 0; k < depth; k += 2, weight += 2 * kPanelColumns)
    for (int column = 0; column < kPanelColumns; column += kLanes, to += kLanes * 4) {
      const Codes even = bfloat_bits(load_floats(weight + column));
      const Codes odd = bfloat_bits(load_floats(weight + kPanelColumns + column));
      store_codes(to, either(even, shift_left<16>(odd)));
    }
}

}  // namespace
}  // namespace weft::cpu
