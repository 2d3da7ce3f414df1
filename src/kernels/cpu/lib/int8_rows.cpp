#include "kernels/cpu/lib/int8_rows.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>
#include <nmmintrin.h>

#include "kernels/cpu/lib/panel_weight.h"
#include "kernels/cpu/lib/result_kind.h"

namespace weft::cpu {
namespace {

constexpr std::int64_t kTermBytes = 4;
constexpr std::int64_t kRowsOfTile = 16;

// The start value of a group's integer sum; with minimums, the factor of the minimum.
std::int32_t group_term(const BlockPanel& block, TermForm form, const std::int8_t* codes, float scale) {
  const __m128i ones = _mm_set1_epi8(1);
  // 16-bit sums over pairs of k, then over all pairs whose indices are equal modulo 4.
  __m128i pairs = _mm_maddubs_epi16(ones, _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  if (block.group == 32) {
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + 16));
    pairs = _mm_add_epi16(pairs, _mm_maddubs_epi16(ones, high));
  }
  pairs = _mm_add_epi16(pairs, _mm_shuffle_epi32(pairs, 0x4e));
  pairs = _mm_add_epi16(pairs, _mm_shuffle_epi32(pairs, 0xb1));
  if (!block.minimums && form == TermForm::pairs && !sums_of_pairs_are_widened(block))
    return _mm_cvtsi128_si32(_mm_mullo_epi16(pairs, _mm_set1_epi16(static_cast<short>(-zero_code_of_pairs(block)))));
  const std::int32_t sum = _mm_cvtsi128_si32(_mm_madd_epi16(pairs, _mm_set1_epi16(1)));
  if (block.minimums) return __builtin_bit_cast(std::int32_t, scale * static_cast<float>(sum));
  return -sum * block.zero_code;
}

}  // namespace

LinearInt8Variant linear_int8_variant(CpuFeatures features) {
  if (features >= CpuFeatures::amx) {
    LinearInt8Variant variant = kLinearInt8Avx512Vnni;
    variant.tile_panel = kInt8TilePanelAmx;
    return variant;
  }
  if (features >= CpuFeatures::avx512_vnni) return kLinearInt8Avx512Vnni;
  if (features >= CpuFeatures::avx512) return kLinearInt8Avx512;
  return features >= CpuFeatures::avx2 ? kLinearInt8Avx2 : kLinearInt8Baseline;
}

Verdict int8_rows_verdict(const Meta& codes, const Meta& scale, DType weight) {
  const PanelKind kind = *panel_kind(weight);
  if (!is_group_kind(kind)) return Verdict::no(fmt::format("{} is not a block type", dtype_text(weight)));
  if (has_real_codes(block_panel(kind)))
    return Verdict::no(fmt::format("the codes of {} are not integers", dtype_text(weight)));
  if (codes.dtype != DType::i8 || codes.rank() != 2 || scale.dtype != DType::f32 || scale.rank() != 2)
    return Verdict::no(fmt::format("wants codes i8[rows, depth] and scales f32[rows, groups], but is {} and {}",
                                   codes.text(), scale.text()));
  if (!has_contiguous_rows(codes) || !has_contiguous_rows(scale))
    return Verdict::no("the elements of a row are not contiguous");
  return Verdict::yes();
}

std::int64_t row_term_bytes(PanelKind kind, std::int64_t depth) { return depth / block_panel(kind).group * kTermBytes; }

Int8Rows rows_with_terms(const LinearInt8Variant& variant, const TensorView& codes, const TensorView& scale,
                         PanelKind kind, std::byte* terms, ThreadPool& threads) {
  constexpr std::int64_t kRowsOfChunk = 16;
  const BlockPanel block = block_panel(kind);
  const std::int64_t depth = codes.size[1], groups = depth / block.group;
  const Int8Rows x{codes.as<const std::int8_t>(), codes.stride[0], scale.as<const float>(), scale.stride[0], terms,
                   depth / kGroupDepth,           codes.size[0]};
  threads.run((x.rows + kRowsOfChunk - 1) / kRowsOfChunk, [&](std::int64_t chunk, int) {
    for (std::int64_t row = chunk * kRowsOfChunk; row < std::min(x.rows, (chunk + 1) * kRowsOfChunk); ++row) {
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t k = g * block.group;
        const std::int32_t term = group_term(block, variant.term_form, x.codes + row * x.code_stride + k,
                                             x.scale[row * x.scale_stride + k / kGroupDepth]);
        std::memcpy(terms + (row * groups + g) * kTermBytes, &term, kTermBytes);
      }
    }
  });
  return x;
}

bool multiplies_tiles(const LinearInt8Variant& variant, PanelKind kind, std::int64_t rows) {
  // Sapphire Rapids: codes of 8 bits need less unpacking without tiles.
  const BlockPanel block = block_panel(kind);
  const std::int64_t least_rows = block.code_bits == 8 ? 64 : 32;
  return variant.tile_panel != nullptr && rows >= least_rows && block.group == kGroupDepth;
}

Dim term_scratch_bytes(PanelKind kind, std::int64_t depth, const Dim& rows) {
  return align((rows + Dim(kRowsOfTile - 1)) * Dim(2 * row_term_bytes(kind, depth)), 64);
}

Int8TileRows rows_for_tiles(const TensorView& codes, const TensorView& scale, PanelKind kind, std::byte* to,
                            ThreadPool& threads) {
  const BlockPanel block = block_panel(kind);
  const std::int64_t rows = codes.size[0], groups = codes.size[1] / kGroupDepth;
  const std::int64_t tiles = (rows + kRowsOfTile - 1) / kRowsOfTile, of_tile = groups * kRowsOfTile;
  auto* const scales = reinterpret_cast<float*>(to);
  float* const terms = scales + tiles * of_tile;
  const Int8TileRows x{codes.as<const std::int8_t>(), codes.stride[0], scales, terms, groups, rows};
  threads.run(tiles, [&](std::int64_t tile, int) {
    for (std::int64_t r = 0; r < kRowsOfTile; ++r) {
      const std::int64_t row = tile * kRowsOfTile + r;
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t at = tile * of_tile + g * kRowsOfTile + r;
        const float own = row < rows ? scale.as<const float>()[row * scale.stride[0] + g] : 0.0f;
        scales[at] = own;
        if (!block.minimums) continue;
        terms[at] = row < rows
                        ? __builtin_bit_cast(float, group_term(block, TermForm::whole,
                                                               x.codes + row * x.code_stride + g * kGroupDepth, own))
                        : 0.0f;
      }
    }
  });
  return x;
}

Int8TileRows part_of(Int8TileRows all, std::int64_t first, std::int64_t count) {
  all.codes += first * all.code_stride;
  all.scale += first * all.groups;
  all.term += first * all.groups;
  all.rows = count;
  return all;
}

Int8Rows part_of(Int8Rows all, PanelKind kind, std::int64_t first, std::int64_t count) {
  all.codes += first * all.code_stride;
  all.scale += first * all.scale_stride;
  all.term += first * row_term_bytes(kind, all.groups * kGroupDepth);
  all.rows = count;
  return all;
}

}  // namespace weft::cpu
