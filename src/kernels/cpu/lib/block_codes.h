#pragma once

// Codes and scales of a record of a block panel (panel.h), for the skeletons.

#include WEFT_VECTORS

#include "kernels/cpu/lib/panel.h"

namespace weft::cpu {
namespace {

constexpr int kStepBytes = kPanelColumns * 4;
constexpr int kVectorBytes = kLanes * 4;
constexpr int kPanelVectors = kPanelColumns / kLanes;

// Prefetching 4 to 8 KB ahead reads memory up to 20 % faster than no prefetching (measured on Zen 5). Into the second
// cache, which can wait for more lines at once than the first, it is 3 to 30 % faster (Sapphire Rapids, one thread).
constexpr std::int64_t kPrefetchBytes = 8192;
constexpr int kIntoSecondCache = 2;  // of __builtin_prefetch

// All kinds with records: the functions of a skeleton are instantiated for each. Kinds with real codes are apart.
template <PanelKind... kinds>
struct Kinds {};
using BlockKinds = Kinds<PanelKind::q4_0, PanelKind::q4_1, PanelKind::q8_0, PanelKind::q5_0, PanelKind::q5_1,
                         PanelKind::iq4_nl, PanelKind::mxfp4, PanelKind::q2_k, PanelKind::q3_k, PanelKind::q4_k,
                         PanelKind::q5_k, PanelKind::q6_k, PanelKind::iq4_xs, PanelKind::i4g32, PanelKind::i4g64,
                         PanelKind::i4g128, PanelKind::e2m1g16, PanelKind::bytes16, PanelKind::bytes32>;
using RealKinds = Kinds<PanelKind::nf4g32, PanelKind::nf4g64, PanelKind::e4m3g32, PanelKind::e4m3g128>;

// The values of 4-bit codes plus the panel's zero_code.
constexpr std::uint8_t kNonLinearCodes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
constexpr std::uint8_t kDoubledE2m1Codes[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

template <PanelKind kind>
WEFT_VECTOR Codes load_codebook() {
  constexpr Codebook codebook = block_panel(kind).codebook;
  if constexpr (codebook == Codebook::non_linear) return load_table(kNonLinearCodes);
  if constexpr (codebook == Codebook::doubled_e2m1) return load_table(kDoubledE2m1Codes);
  return zero_codes();
}

// Codes of the k from 4 * step on, in bytes: `group` has the codes of 32 k, `n` is the vector of columns.
template <PanelKind kind>
WEFT_VECTOR Codes codes_of_step(const std::byte* group, int step, int n, Codes codebook) {
  constexpr BlockPanel block = block_panel(kind);
  constexpr int low_bits = low_plane_bits(block), high_bits = block.code_bits - low_bits;
  const std::byte* low = group + n * kVectorBytes;
  const std::byte* high = low + low_bits * kPanelColumns * kGroupDepth / 8;
  Codes code;
  if constexpr (low_bits == 8) {
    code = load_codes(low + step * kStepBytes);
  } else if constexpr (low_bits == 4) {
    const Codes both = load_codes(low + step / 2 * kStepBytes);
    code = step % 2 == 0 ? low_nibbles(both) : high_nibbles(both);
  } else {
    code = move_bits(load_codes(low + step / 4 * kStepBytes), 2 * (step % 4), 0, 2);
  }
  if constexpr (high_bits == 1) code = either(code, move_bits(load_codes(high), step, low_bits, 1));
  if constexpr (high_bits == 2)
    code = either(code, move_bits(load_codes(high + step / 4 * kStepBytes), 2 * (step % 4), low_bits, 2));
  if constexpr (block.codebook != Codebook::none && !has_real_codes(block)) code = look_up(codebook, code);
  return code;
}

// The values of e4m3 codes as bf16, which has them all: of bytes 0 and 2 of each lane in `even`, of 1 and 3 in `odd`.
struct BfloatPairs {
  Codes even, odd;
};

// A bf16 is two bytes. Where the code is neither subnormal nor NaN, the low nibble of the code is the high one of the
// lower byte, and a table has the upper byte by the code's high nibble. Two tables change the bytes of the other codes.
// Their index is the low nibble plus the offset of the high one. look_up() gives 0 for an index above 127, so normal
// codes change nothing. NaN has the index 0, which also makes the upper byte of 0.
constexpr std::uint8_t kE4m3Upper[16] = {0x3c, 0x3d, 0x3e, 0x3f, 0x40, 0x41, 0x42, 0x43,
                                         0xbc, 0xbd, 0xbe, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3};
constexpr std::uint8_t kE4m3Offsets[16] = {0x00, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0xf1,
                                           0x00, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0xf1};
constexpr std::uint8_t kE4m3UpperChanges[16] = {0x3c, 0x07, 0x07, 0x07};
constexpr std::uint8_t kE4m3LowerChanges[16] = {0x00, 0x10, 0xa0, 0xf0, 0x40, 0x70, 0x20, 0x10};

WEFT_VECTOR BfloatPairs e4m3_bfloats(Codes codes) {
  constexpr int even_bytes = 0x00ff00ff, odd_bytes = static_cast<int>(0xff00ff00u);
  const Codes low = low_nibbles(codes), high = high_nibbles(codes);
  const Codes index = add_bytes(low, look_up(load_table(kE4m3Offsets), high));
  const Codes upper = flip_bits(look_up(load_table(kE4m3Upper), high), look_up(load_table(kE4m3UpperChanges), index));
  const Codes lower = flip_bits(shift_left<4>(low), look_up(load_table(kE4m3LowerChanges), index));
  return {either(lane_bits(lower, even_bytes), shift_left<8>(lane_bits(upper, even_bytes))),
          either(shift_right<8>(lane_bits(lower, odd_bytes)), lane_bits(upper, odd_bytes))};
}

// Scale and minimum of a record or of a group; the minimum is undefined in formats without minimums.
struct Scales {
  Floats scale, minimum;
};

template <PanelKind kind>
WEFT_VECTOR Floats load_scale(const std::byte* array, int n) {
  constexpr BlockPanel block = block_panel(kind);
  const std::byte* from = array + n * kLanes * scale_bytes(block);
  if constexpr (block.form == ScaleForm::f32) return load_floats(from);
  if constexpr (block.form == ScaleForm::bf16) return load_bfloats(from);
  return load_halves(from);
}

// A scale is 19 bits: see panel.h. The product with the zero point is exact.
template <PanelKind kind>
WEFT_VECTOR Scales scale_with_zero_point(const std::byte* record, int n) {
  const Codes rest = load_unsigned(record + minimum_offset(block_panel(kind)) + n * kLanes);
  const Codes high = shift_left<16>(load_shorts(record + n * kLanes * 2));
  Scales scales;
  scales.scale = as_floats(either(high, shift_left<8>(lane_bits(rest, 0xe0))));
  scales.minimum = multiply(scales.scale, multiply(to_floats(lane_bits(rest, 31)), spread(-1.0f)));
  return scales;
}

// Of the record's part `part` of scale_depth k.
template <PanelKind kind>
WEFT_VECTOR Scales record_scales(const std::byte* record, int part, int n) {
  constexpr BlockPanel block = block_panel(kind);
  if constexpr (block.form == ScaleForm::with_zero_point) return scale_with_zero_point<kind>(record, n);
  const std::byte* array = record + part * kPanelColumns * scale_bytes(block);
  Scales scales;
  scales.scale = load_scale<kind>(array, n);
  scales.minimum = scales.scale;
  if constexpr (block.minimums) scales.minimum = load_scale<kind>(array + minimum_offset(block), n);
  return scales;
}

// Of group `group` of the record, whose own scales are `whole`. The products are exact, but that with an e4m3 is
// rounded, as in a block.
template <PanelKind kind>
WEFT_VECTOR Scales scales_of_group(const std::byte* record, std::int64_t group, int n, Scales whole) {
  constexpr BlockPanel block = block_panel(kind);
  const std::byte* own = record + group_scale_offset(block) + group * kPanelColumns + n * kLanes;
  Scales scales = whole;
  if constexpr (block.group_scales == GroupScales::bytes) {
    scales.scale = multiply(whole.scale, to_floats(load_signed(own)));
    if constexpr (block.minimums) {
      const std::byte* minimum = own + group_minimum_offset(block) - group_scale_offset(block);
      scales.minimum = multiply(whole.minimum, to_floats(load_signed(minimum)));
    }
  }
  if constexpr (block.group_scales == GroupScales::e4m3)
    scales.scale = multiply(whole.scale, even_bfloats(e4m3_bfloats(load_unsigned(own)).even));
  if constexpr (block.group_scales == GroupScales::nibbles) {
    const Codes both = load_unsigned(own);
    scales.scale = multiply(whole.scale, to_floats(nibble<0>(both)));
    scales.minimum = multiply(whole.minimum, to_floats(nibble<1>(both)));
  }
  return scales;
}

}  // namespace
}  // namespace weft::cpu
