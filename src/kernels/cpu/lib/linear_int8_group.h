#pragma once

// The products of one group of k: what the loops over a panel in linear_int8_skeleton.h and over unpacked blocks of it
// in linear_int8_blocks.h share. A row's result is the same sequence of operations in every tile.

#include WEFT_VECTORS

#include "kernels/cpu/lib/block_codes.h"
#include "kernels/cpu/lib/linear_variant.h"

namespace weft::cpu {
namespace {

// How a group's integers are summed. Without wide dots, sums have 16 bits:
enum class CodeSums : std::uint8_t {
  whole,    // all steps in one sum, of 32 bits or of codes of at most 4 bits: 8 steps of at most 2 * 15 * 128
  widened,  // codes of 5 or 6 bits: as many steps as fit 16 bits, which are then added to a sum of 32 bits
  split,    // wider codes are two nibbles with a sum each
};

// What products of codes depend on.
struct CodeForm {
  CodeSums sums;
  bool minimums;
  int group;       // k with one scale: 16 or 32
  int wide_steps;  // steps of 4 k that are summed before they are widened
};
template <PanelKind kind>
constexpr CodeForm code_form() {
  constexpr BlockPanel block = block_panel(kind);
  constexpr CodeSums sums = kWideDot || value_bits(block) <= 4 ? CodeSums::whole
                            : sums_of_pairs_are_widened(block) ? CodeSums::widened
                                                               : CodeSums::split;
  // 2 * 63 * 128 twice, or 2 * 31 * 128 four times, fit 16 bits.
  return {sums, block.minimums, block.group, sums != CodeSums::widened ? 8 : value_bits(block) == 6 ? 2 : 4};
}
template <PanelKind kind>
constexpr CodeForm kCodeForm = code_form<kind>();

// The integer sums of one row and vector over a group. `high` is the sum of high nibbles, or that of 32 bits.
template <CodeForm form>
struct GroupSum {
  Codes low;
  Codes high;

  WEFT_VECTOR GroupSum start(const std::byte* term) {
    const Codes zero_point = form.minimums ? zero_codes() : spread_four(term);
    return form.sums == CodeSums::whole ? GroupSum{zero_point, zero_point} : GroupSum{zero_codes(), zero_point};
  }
  WEFT_VECTOR void widen(GroupSum& sum) {
    sum.high = add(sum.high, whole_dot(sum.low));
    sum.low = zero_codes();
  }
  WEFT_VECTOR Floats total(const GroupSum& sum) {
    if constexpr (form.sums == CodeSums::split) return to_floats(whole_dot(sum.low, sum.high));
    if constexpr (form.sums == CodeSums::widened) return to_floats(sum.high);
    return to_floats(whole_dot(sum.low));
  }
};

// The rows of a tile at the k that is next.
struct TileRows {
  const std::int8_t* codes;
  const float* scale;
  const std::byte* term;
  std::int64_t code_stride, scale_stride, term_stride;
};
template <CodeForm form>
WEFT_VECTOR TileRows rows_from(const Int8Rows& all, std::int64_t first_row) {
  const std::int64_t term_stride = all.groups * (kGroupDepth / form.group) * 4;
  return {all.codes + first_row * all.code_stride,
          all.scale + first_row * all.scale_stride,
          all.term + first_row * term_stride,
          all.code_stride,
          all.scale_stride,
          term_stride};
}
template <CodeForm form>
WEFT_VECTOR void next_group_depth(TileRows& x) {
  x.codes += kGroupDepth, ++x.scale, x.term += kGroupDepth / form.group * 4;
}

// f += the products of group `g` of 32 k. codes(step, n) are those of a step of the 32 k, scales(n) those of the group.
template <CodeForm form, int rows, int vectors, class CodesOf, class ScalesOf>
WEFT_VECTOR void add_group(Floats (&f)[rows][vectors], int g, const TileRows& x, CodesOf codes, ScalesOf scales_of) {
  const std::byte* term = x.term + g * 4;
  GroupSum<form> sum[rows][vectors];
  WEFT_UNROLL for (int r = 0; r < rows; ++r) WEFT_UNROLL for (int n = 0; n < vectors; ++n) sum[r][n] =
      GroupSum<form>::start(term + r * x.term_stride);
  WEFT_UNROLL for (int i = 0; i < form.group / 4; ++i) {
    const int step = g * form.group / 4 + i;
    Codes low[vectors], high[vectors];
    WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
      low[n] = codes(step, n);
      if constexpr (form.sums == CodeSums::split) {
        high[n] = high_nibbles(low[n]);
        low[n] = low_nibbles(low[n]);
      }
    }
    WEFT_UNROLL for (int r = 0; r < rows; ++r) {
      const Codes four = spread_four(x.codes + r * x.code_stride + step * 4);
      WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
        sum[r][n].low = dot(sum[r][n].low, low[n], four);
        if constexpr (form.sums == CodeSums::split) sum[r][n].high = dot(sum[r][n].high, high[n], four);
        if constexpr (form.sums == CodeSums::widened)
          if ((i + 1) % form.wide_steps == 0) GroupSum<form>::widen(sum[r][n]);
      }
    }
  }
  Scales scales[vectors];
  WEFT_UNROLL for (int n = 0; n < vectors; ++n) scales[n] = scales_of(n);
  WEFT_UNROLL for (int r = 0; r < rows; ++r) {
    const Floats s = spread(x.scale[r * x.scale_stride]);
    WEFT_UNROLL for (int n = 0; n < vectors; ++n) {
      f[r][n] = fused_multiply_add(GroupSum<form>::total(sum[r][n]), multiply(scales[n].scale, s), f[r][n]);
      if constexpr (form.minimums)
        f[r][n] = fused_multiply_add(
            scales[n].minimum, spread(*reinterpret_cast<const FourBytesFloat*>(term + r * x.term_stride)), f[r][n]);
    }
  }
}

}  // namespace
}  // namespace weft::cpu
