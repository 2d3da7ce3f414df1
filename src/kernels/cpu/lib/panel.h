#pragma once

// Panels: the layout of a weight [columns, depth] for the CPU's linear kernels.
//
// A panel is 32 columns, stored as one stream in the order in which the kernels read it. The last panel is padded with
// zeros. One format per element type is used on every instruction set, for one row and for many.
//
//   q4x32  (q4_0, q4_1)  one record per group of 32 k: [32 f16 d][32 f16 m, q4_1 only][512 bytes of codes]
//                        code byte (k / 8, column, k % 4) has q[k] in its low and q[k + 4] in its high half
//   q8x32  (q8_0)        one record per group of 32 k: [32 f16 d][1024 bytes of codes]
//                        code byte (k / 4, column, k % 4) has q + 128
//   f32x32, f16x32       [k][32]
//   bf16x32              [k / 2][32][2], an odd depth is padded with a zero
//
// The records are 576 (q4_0), 640 (q4_1) and 1088 (q8_0) bytes, so each starts on a cache line.
//
// Objects built for newer instruction sets include this header: no std, nothing that could become a weak symbol.

#include <cstddef>
#include <cstdint>

namespace weft::cpu {

constexpr int kPanelColumns = 32;
constexpr int kGroupDepth = 32;

enum class PanelKind : std::uint8_t { f32, f16, bf16, q4_0, q4_1, q8_0 };

static constexpr bool is_group_kind(PanelKind kind) {
  return kind == PanelKind::q4_0 || kind == PanelKind::q4_1 || kind == PanelKind::q8_0;
}

// What tensor/block_format.h says of the block kinds, for code that cannot include it. Codes are stored without sign:
// `zero_code` encodes 0.
static constexpr bool has_minimums(PanelKind kind) { return kind == PanelKind::q4_1; }
static constexpr int code_bits(PanelKind kind) { return kind == PanelKind::q8_0 ? 8 : 4; }
static constexpr int zero_code(PanelKind kind) {
  return kind == PanelKind::q8_0 ? 128 : kind == PanelKind::q4_0 ? 8 : 0;
}

// Bytes before the codes of a record: d, and m with minimums.
static constexpr std::int64_t record_head_bytes(PanelKind kind) { return kPanelColumns * (has_minimums(kind) ? 4 : 2); }

static constexpr std::int64_t record_bytes(PanelKind kind) {
  return record_head_bytes(kind) + kPanelColumns * kGroupDepth * code_bits(kind) / 8;
}

// Bytes of one panel of `depth` k; of the block kinds, depth is a multiple of 32.
static constexpr std::int64_t panel_bytes(PanelKind kind, std::int64_t depth) {
  if (is_group_kind(kind)) return depth / kGroupDepth * record_bytes(kind);
  if (kind == PanelKind::f32) return depth * kPanelColumns * 4;
  if (kind == PanelKind::f16) return depth * kPanelColumns * 2;
  return (depth + 1) / 2 * kPanelColumns * 4;
}

static constexpr std::int64_t panel_count(std::int64_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns;
}

}  // namespace weft::cpu
