#pragma once

// The functions of the linear family for one instruction set: one table per op and instruction set, of functions over
// plain pointers. Objects built for newer instruction sets include no other headers of the project than this one and
// panel.h.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/lib/panel.h"

namespace weft::cpu {

enum class FloatKind : std::uint8_t { f32, f16, bf16 };

// The output for the sums of one panel.
struct PanelOutput {
  std::byte* data;          // first row, first column of the panel
  std::int64_t row_stride;  // bytes
  FloatKind kind;           // sums are rounded to it once
  int columns;              // 1 to 32; the rest of the panel is padding and not written
  const float* bias;        // [32], added before rounding; null for none
};

// How a zero point enters the integer sum of a group.
enum class TermForm : std::uint8_t {
  whole,  // i32 start value of a 32-bit sum: -zero_code times the sum of the group's codes
  pairs,  // two i16 start values of the 16-bit sums over k % 4 in {0, 1} and {2, 3}: -zero_code_of_pairs times theirs;
          // where sums of pairs are widened, as `whole`
};

// Rows of quantized activations.
struct Int8Rows {
  const std::int8_t* codes;   // [rows, 32 * groups]
  std::int64_t code_stride;   // elements
  const float* scale;         // [rows, groups]
  std::int64_t scale_stride;  // elements
  // [rows, groups of the weight], 4 bytes each: f32 scale * sum of codes with minimums, else as TermForm says.
  const std::byte* term;
  std::int64_t groups;  // of 32 k
  std::int64_t rows;
};

// Rows for tiles: scales and terms of 16 rows are next to each other, and the last 16 are filled up with zeros.
struct Int8TileRows {
  const std::int8_t* codes;  // [rows, 32 * groups]
  std::int64_t code_stride;  // elements
  const float* scale;        // [rows / 16, groups, 16]
  const float* term;         // the same, of scale * sum of codes; read for kinds with minimums only
  std::int64_t groups;       // of 32 k
  std::int64_t rows;         // at most kInt8TileRowLimit
};
constexpr std::int64_t kInt8TileRowLimit = 256;

// For each group g of the weight, in order: c = exact dot of weight codes and x codes, f = fma(float(c), d * s, f), and
// with minimums then f = fma(m, s * sum of x codes, f). The bits are the same on every instruction set.
struct LinearInt8Variant {
  TermForm term_form;
  void (*panel)(PanelKind kind, const std::byte* panel, const Int8Rows& x, const PanelOutput& output);
  // For many rows and kinds with groups of 32 k; null for none.
  void (*tile_panel)(PanelKind kind, const std::byte* panel, const Int8TileRows& x, const PanelOutput& output);
};
using Int8TilePanel = decltype(LinearInt8Variant::tile_panel);

struct FloatRows {
  const float* values;  // [rows, depth]
  std::int64_t stride;  // elements
  std::int64_t depth;
  std::int64_t rows;            // at most kFloatRowLimit
  bool rounds_weights = false;  // to bf16, before they are multiplied; for panels of blocks alone
};

// The sums of a row block are on the stack: 128 x 32 x 4 = 16 KB.
constexpr std::int64_t kFloatRowLimit = 128;

struct BfloatRows {
  const std::uint16_t* values;  // [rows, depth]
  std::int64_t stride;          // elements
  std::int64_t depth;           // even
  std::int64_t rows;            // at most row_limit of the variant
};

// bf16 rows times a bf16 panel, without rows widened in memory.
struct BfloatVariant {
  void (*panel)(const std::byte* panel, const BfloatRows& x, const PanelOutput& output);  // null for none
  std::int64_t row_limit;
};

// bf16 rows times a panel of blocks, whose weights are rounded to bf16: the bits of the products of bf16.
struct RoundedVariant {
  void (*panel)(PanelKind kind, const std::byte* panel, const BfloatRows& x, const PanelOutput& output);  // or null
  std::int64_t row_limit;
};

// f32 products summed in k order, weights dequantized to f32; products of bf16 in the order of AMX tiles (amx_tiles.h)
// or of the processor's dots of bf16.
struct LinearVariant {
  void (*panel)(PanelKind kind, const std::byte* panel, const FloatRows& x, const PanelOutput& output);
  // Widens `count` values exactly.
  void (*widen)(FloatKind kind, const std::byte* from, float* to, std::int64_t count);
  BfloatVariant bfloats;
  // For calls of at most its row_limit rows: the same bits sooner.
  BfloatVariant few_bfloats;
  RoundedVariant rounded, few_rounded;
  // Whether weights of blocks are rounded to bf16. Rows are bf16 then.
  bool rounds_weights = false;
};

extern const LinearInt8Variant kLinearInt8Baseline;
extern const LinearInt8Variant kLinearInt8Avx2;
extern const LinearInt8Variant kLinearInt8Avx512;
extern const LinearInt8Variant kLinearInt8Avx512Vnni;
extern const Int8TilePanel kInt8TilePanelAmx;

extern const LinearVariant kLinearBaseline;
extern const LinearVariant kLinearAvx2;
extern const LinearVariant kLinearAvx512;
// These replace the one of kLinearAvx512.
extern const BfloatVariant kBfloatAvx512Bf16;
extern const BfloatVariant kBfloatAmx;
extern const RoundedVariant kRoundedAmx;

}  // namespace weft::cpu
