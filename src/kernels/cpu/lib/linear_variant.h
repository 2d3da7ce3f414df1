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

// For each group g of the weight, in order: c = exact dot of weight codes and x codes, f = fma(float(c), d * s, f), and
// with minimums then f = fma(m, s * sum of x codes, f). The bits are the same on every instruction set.
struct LinearInt8Variant {
  TermForm term_form;
  void (*panel)(PanelKind kind, const std::byte* panel, const Int8Rows& x, const PanelOutput& output);
};

struct FloatRows {
  const float* values;  // [rows, depth]
  std::int64_t stride;  // elements
  std::int64_t depth;
  std::int64_t rows;  // at most kFloatRowLimit
};

// The sums of a row block are on the stack: 128 x 32 x 4 = 16 KB.
constexpr std::int64_t kFloatRowLimit = 128;

struct BfloatRows {
  const std::uint16_t* values;  // [rows, depth]
  std::int64_t stride;          // elements
  std::int64_t depth;           // even
  std::int64_t rows;            // at most kFloatRowLimit
};

// f32 products summed in k order, weights dequantized to f32.
struct LinearVariant {
  void (*panel)(PanelKind kind, const std::byte* panel, const FloatRows& x, const PanelOutput& output);
  // bf16 rows times a bf16 panel with the processor's instruction for pairs; null if it has none.
  void (*bfloat_panel)(const std::byte* panel, const BfloatRows& x, const PanelOutput& output);
  // Widens `count` values exactly.
  void (*widen)(FloatKind kind, const std::byte* from, float* to, std::int64_t count);
};

extern const LinearInt8Variant kLinearInt8Baseline;
extern const LinearInt8Variant kLinearInt8Avx2;
extern const LinearInt8Variant kLinearInt8Avx512;
extern const LinearInt8Variant kLinearInt8Avx512Vnni;

extern const LinearVariant kLinearBaseline;
extern const LinearVariant kLinearAvx2;
extern const LinearVariant kLinearAvx512;
extern const LinearVariant kLinearAvx512Bf16;

}  // namespace weft::cpu
