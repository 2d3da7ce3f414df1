#pragma once

// Panels: the layout of a weight [columns, depth] for the CPU's linear kernels.
//
// A panel is 32 columns, stored as one stream in the order in which the kernels read it. The last panel is padded with
// zeros. One format per element type is used on every instruction set, for one row and for many.
//
//   f32x32, f16x32       [k][32]
//   bf16x32              [k / 2][32][2], an odd depth is padded with a zero
//   of block types       records, one after another: block_panel() has a row for each type
//
// A record of a block type is 32, 64, 128 or 256 k: first all scales, each an array [32], then the codes of each 32 k
// in planes of bits. In `step` s are the k from 4 * s on.
//
//   scales       [32] of the record's scale; the same of its minimum; then, for types with scales of groups, a byte
//                [32] for each group of 16 or 32 k: all scales before all minimums, or both as the nibbles of a byte
//   zero points  for types that have them, the scale is its 16 bits as bf16; then an array of bytes [32], each with
//                three more bits of the scale's mantissa above five bits of the zero point
//   4 bits       byte (k / 8, column, k % 4) has the even step in its low and the odd step in its high half
//   2 bits       byte (k / 16, column, k % 4) has the steps 4 * (k / 16) to 4 * (k / 16) + 3, the first lowest
//   1 bit        byte (column, k % 4) has all eight steps, the first in the lowest bit
//   8 bits       byte (k / 4, column, k % 4)
//
// Codes of 3, 5 and 6 bits are a plane of their lowest 2 or 4 bits, then a plane of the others. Scales and planes are
// whole cache lines, but for the scales of i4g32. Panels are at most 1.06 times as large as the blocks, or as the codes
// and scales of a folder, but for scales that are f32 here and fewer or smaller there: 1.09 times of NF4 with quantized
// scales, 1.11 of NVFP4, and 1.03 or 1.13 of codes of 8 bits.
//
// Objects built for newer instruction sets include this header: no std, nothing that could become a weak symbol.

#include <cstddef>
#include <cstdint>

namespace weft::cpu {

constexpr int kPanelColumns = 32;
constexpr int kGroupDepth = 32;  // of the activations' scales

// Block types without a kind of their own have bytes16 or bytes32, by the k of their scales: codes of 8 bits and f32
// scales. But for i8g32, such panels are larger than the blocks, so they are only made during a call, one at a time.
enum class PanelKind : std::uint8_t {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q8_0,
  q5_0,
  q5_1,
  iq4_nl,
  mxfp4,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_xs,
  i4g32,
  i4g64,
  i4g128,
  nf4g32,
  nf4g64,
  e4m3g32,
  e4m3g128,
  e2m1g16,
  bytes16,
  bytes32,
};

static constexpr bool is_group_kind(PanelKind kind) { return kind >= PanelKind::q4_0; }

enum class ScaleForm : std::uint8_t { f16, bf16, f32, with_zero_point };
// A group's own factor of its scale, and of its minimum: signed bytes, or one byte of two nibbles, the scale's first;
// or a byte of f8e4m3, of types without minimums.
enum class GroupScales : std::uint8_t { none, bytes, nibbles, e4m3 };
enum class Codebook : std::uint8_t { none, non_linear, doubled_e2m1, nf4, e4m3 };

struct BlockPanel {
  int code_bits;    // as stored: 2, 3, 4, 5, 6 or 8
  int zero_code;    // encodes 0, after the codebook: codes are without sign
  int group;        // k with one scale: 16 or 32
  int depth;        // k of a record
  int scale_depth;  // k with one scale of the record
  bool minimums;
  ScaleForm form;
  GroupScales group_scales;
  Codebook codebook;
};

static constexpr BlockPanel block_panel(PanelKind kind) {
  constexpr auto f16 = ScaleForm::f16;
  constexpr auto none = GroupScales::none, bytes = GroupScales::bytes, nibbles = GroupScales::nibbles;
  constexpr auto linear = Codebook::none;
  switch (kind) {
    case PanelKind::q4_0:
      return {4, 8, 32, 32, 32, false, f16, none, linear};
    case PanelKind::q4_1:
      return {4, 0, 32, 32, 32, true, f16, none, linear};
    case PanelKind::q8_0:
      return {8, 128, 32, 32, 32, false, f16, none, linear};
    case PanelKind::q5_0:
      return {5, 16, 32, 32, 32, false, f16, none, linear};
    case PanelKind::q5_1:
      return {5, 0, 32, 32, 32, true, f16, none, linear};
    case PanelKind::iq4_nl:
      return {4, 128, 32, 32, 32, false, f16, none, Codebook::non_linear};
    case PanelKind::mxfp4:
      return {4, 16, 32, 32, 32, false, ScaleForm::bf16, none, Codebook::doubled_e2m1};
    case PanelKind::q2_k:
      return {2, 0, 16, 256, 256, true, f16, nibbles, linear};
    case PanelKind::q3_k:
      return {3, 4, 16, 256, 256, false, f16, bytes, linear};
    case PanelKind::q4_k:
      return {4, 0, 32, 256, 256, true, f16, bytes, linear};
    case PanelKind::q5_k:
      return {5, 0, 32, 256, 256, true, f16, bytes, linear};
    case PanelKind::q6_k:
      return {6, 32, 16, 256, 256, false, f16, bytes, linear};
    case PanelKind::iq4_xs:
      return {4, 128, 32, 256, 256, false, f16, bytes, Codebook::non_linear};
    case PanelKind::i4g32:
      return {4, 0, 32, 32, 32, true, ScaleForm::with_zero_point, none, linear};
    case PanelKind::i4g64:
      return {4, 0, 32, 64, 64, true, ScaleForm::with_zero_point, none, linear};
    case PanelKind::i4g128:
      return {4, 0, 32, 128, 128, true, ScaleForm::with_zero_point, none, linear};
    case PanelKind::nf4g32:
      return {4, 0, 32, 32, 32, false, ScaleForm::f32, none, Codebook::nf4};
    case PanelKind::nf4g64:
      return {4, 0, 32, 64, 64, false, ScaleForm::f32, none, Codebook::nf4};
    case PanelKind::e4m3g32:
      return {8, 0, 32, 32, 32, false, ScaleForm::f32, none, Codebook::e4m3};
    case PanelKind::e4m3g128:
      return {8, 0, 32, 128, 128, false, ScaleForm::f32, none, Codebook::e4m3};
    case PanelKind::e2m1g16:
      return {4, 16, 16, 64, 64, false, ScaleForm::f32, GroupScales::e4m3, Codebook::doubled_e2m1};
    case PanelKind::bytes16:
      return {8, 128, 16, 32, 16, false, ScaleForm::f32, none, linear};
    case PanelKind::bytes32:
      return {8, 128, 32, 32, 32, false, ScaleForm::f32, none, linear};
    case PanelKind::f32:
    case PanelKind::f16:
    case PanelKind::bf16:
      break;
  }
  return {};
}

static constexpr bool has_minimums(PanelKind kind) { return block_panel(kind).minimums; }
// Real codes are indices of real numbers. Only linear reads them, as linear_int8 sums products of integers.
static constexpr bool has_real_codes(const BlockPanel& block) {
  return block.codebook == Codebook::nf4 || block.codebook == Codebook::e4m3;
}
// Bits of a code after the codebook.
static constexpr int value_bits(const BlockPanel& block) {
  return block.codebook == Codebook::non_linear ? 8 : block.codebook == Codebook::doubled_e2m1 ? 5 : block.code_bits;
}
// Where sums have 16 bits, those of codes of 5 or 6 bits are added to sums of 32 bits, which start with a whole term.
// Wider codes are two nibbles, and the zero point is that of the high one.
static constexpr bool sums_of_pairs_are_widened(const BlockPanel& block) {
  return value_bits(block) > 4 && value_bits(block) <= 6;
}
static constexpr int zero_code_of_pairs(const BlockPanel& block) {
  return value_bits(block) > 4 ? block.zero_code / 16 : block.zero_code;
}
static constexpr int low_plane_bits(const BlockPanel& block) {
  return block.code_bits == 8 ? 8 : block.code_bits >= 4 ? 4 : 2;
}
// Whether some bytes of a panel are neither scales nor codes.
static constexpr bool has_padding(const BlockPanel& block) { return block.form == ScaleForm::with_zero_point; }
static constexpr int scale_bytes(const BlockPanel& block) { return block.form == ScaleForm::f32 ? 4 : 2; }

// Offsets in a record: of the scales, which are at 0; of the minimums or zero points, the groups' scales, the groups'
// minimums; of the codes. `group_codes` are the bytes of the codes of 32 k.
static constexpr std::int64_t minimum_offset(const BlockPanel& block) {
  return block.depth / block.scale_depth * kPanelColumns * scale_bytes(block);
}
static constexpr std::int64_t group_scale_offset(const BlockPanel& block) {
  // Half a cache line of padding would be too much for a record of 32 k.
  if (block.form == ScaleForm::with_zero_point)
    return minimum_offset(block) + kPanelColumns * (block.depth > 32 ? 2 : 1);
  return minimum_offset(block) * (block.minimums ? 2 : 1);
}
static constexpr std::int64_t group_minimum_offset(const BlockPanel& block) {
  const bool scaled = block.group_scales != GroupScales::none;
  return group_scale_offset(block) + (scaled ? block.depth / block.group * kPanelColumns : 0);
}
static constexpr std::int64_t code_offset(const BlockPanel& block) {
  const bool is_own_array = block.group_scales == GroupScales::bytes && block.minimums;
  return group_minimum_offset(block) + (is_own_array ? block.depth / block.group * kPanelColumns : 0);
}
static constexpr std::int64_t group_code_bytes(const BlockPanel& block) {
  return kPanelColumns * kGroupDepth * block.code_bits / 8;
}
static constexpr std::int64_t record_bytes(const BlockPanel& block) {
  return code_offset(block) + block.depth / kGroupDepth * group_code_bytes(block);
}

// Bytes of one panel of `depth` k, whole cache lines; of the block kinds, whole records.
static constexpr std::int64_t panel_bytes(PanelKind kind, std::int64_t depth) {
  if (is_group_kind(kind)) return (depth / block_panel(kind).depth * record_bytes(block_panel(kind)) + 63) / 64 * 64;
  if (kind == PanelKind::f32) return depth * kPanelColumns * 4;
  if (kind == PanelKind::f16) return depth * kPanelColumns * 2;
  return (depth + 1) / 2 * kPanelColumns * 4;
}

static constexpr std::int64_t panel_count(std::int64_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns;
}

}  // namespace weft::cpu
