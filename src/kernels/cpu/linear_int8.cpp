// linear_int8 on the CPU: quantized rows times panels of weights of 2 to 8 bits.
//
// A pass over the rows first computes the terms of each group that the zero points need, 4 bytes per group. Then panels
// times blocks of up to 512 rows are shared among the threads, so each weight byte is read from memory once. One row
// reads as many bytes as the file has (q4_0: 0.56 per weight, q6_K: 0.82) and is bound by that. From 3 to 6 rows on,
// arithmetic is the bound. Weights of block types without a packing are packed panel by panel in each call.

#include <cstring>

#include <fmt/core.h>
#include <nmmintrin.h>

#include "kernels/cpu/lib/linear_calls.h"
#include "kernels/cpu/lib/panel_weight.h"
#include "kernels/cpu/lib/result_kind.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

constexpr std::int64_t kTermBytes = 4;
// Rows of one chunk. Blocks of 32 to 512 rows are equally fast (Zen 3); the largest reads each panel least often.
constexpr std::int64_t kRowLimit = 512;

const LinearInt8Variant& variant_for(CpuFeatures features) {
  if (features >= CpuFeatures::avx512_vnni) return kLinearInt8Avx512Vnni;
  if (features >= CpuFeatures::avx512) return kLinearInt8Avx512;
  return features >= CpuFeatures::avx2 ? kLinearInt8Avx2 : kLinearInt8Baseline;
}

Verdict supports(const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  const Meta& scale = *request.operands[1];
  const Meta& weight = *request.operands[2];
  if (Verdict verdict = weight_verdict(weight); !verdict) return verdict;
  if (!is_group_kind(*panel_kind(weight.dtype)))
    return Verdict::no(fmt::format("{} is not a block type", dtype_text(weight.dtype)));
  if (has_real_codes(block_panel(*panel_kind(weight.dtype))))
    return Verdict::no(fmt::format("the codes of {} are not integers", dtype_text(weight.dtype)));
  if (x.dtype != DType::i8 || x.rank() != 2 || scale.dtype != DType::f32 || scale.rank() != 2)
    return Verdict::no(fmt::format("wants codes i8[rows, depth] and scales f32[rows, groups], but is {} and {}",
                                   x.text(), scale.text()));
  if (!has_contiguous_rows(x) || !has_contiguous_rows(scale))
    return Verdict::no("the elements of a row are not contiguous");
  return result_verdict(request.results[0]);
}

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
  if (!block.minimums && form == TermForm::pairs)
    return _mm_cvtsi128_si32(_mm_mullo_epi16(pairs, _mm_set1_epi16(static_cast<short>(-zero_code_of_pairs(block)))));
  const std::int32_t sum = _mm_cvtsi128_si32(_mm_madd_epi16(pairs, _mm_set1_epi16(1)));
  if (block.minimums) return __builtin_bit_cast(std::int32_t, scale * static_cast<float>(sum));
  return -sum * block.zero_code;
}

// Terms of all groups of the weight, for all rows: [rows, groups of the weight].
void compute_terms(const BlockPanel& block, TermForm form, const Int8Rows& x, std::byte* terms, ThreadPool& threads) {
  constexpr std::int64_t kRowsOfChunk = 16;
  threads.run((x.rows + kRowsOfChunk - 1) / kRowsOfChunk, [&](std::int64_t chunk, int) {
    for (std::int64_t row = chunk * kRowsOfChunk; row < std::min(x.rows, (chunk + 1) * kRowsOfChunk); ++row) {
      const std::int64_t groups = x.groups * kGroupDepth / block.group;
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t k = g * block.group;
        const std::int32_t term =
            group_term(block, form, x.codes + row * x.code_stride + k, x.scale[row * x.scale_stride + k / kGroupDepth]);
        std::memcpy(terms + (row * groups + g) * kTermBytes, &term, kTermBytes);
      }
    }
  });
}

}  // namespace

void run_linear_int8(const LinearInt8Variant& variant, const KernelCall& call) {
  const TensorView& codes = call.operands[0];
  const TensorView& scale = call.operands[1];
  const PanelWeight weight = panel_weight(call.operands[2]);
  const TensorView& result = call.results[0];
  const std::int64_t groups = weight.depth / kGroupDepth;
  const BlockPanel block = block_panel(weight.kind);
  const std::int64_t row_bytes = weight.depth / block.group * kTermBytes;  // of terms
  const std::int64_t terms_bytes = whole_cache_lines(codes.size[0] * row_bytes);
  Int8Rows all{codes.as<const std::int8_t>(),
               codes.stride[0],
               scale.as<const float>(),
               scale.stride[0],
               call.scratch.data(),
               groups,
               codes.size[0]};
  compute_terms(block, variant.term_form, all, call.scratch.data(), call.threads);

  for_each_panel(weight, all.rows, kRowLimit, call.scratch.subspan(static_cast<std::size_t>(terms_bytes)), call.threads,
                 [&](const std::byte* panel, std::int64_t index, RowBlock rows) {
                   Int8Rows x = all;
                   x.codes += rows.first * x.code_stride;
                   x.scale += rows.first * x.scale_stride;
                   x.term += rows.first * row_bytes;
                   x.rows = rows.count;
                   variant.panel(weight.kind, panel, x, panel_output(result, rows.first, index, nullptr));
                 });
}

}  // namespace weft::cpu

KERNELS(cpu, linear_int8) {
  Kernel kernel;
  kernel.op = "linear_int8";
  kernel.provider = "cpu";
  kernel.supported = cpu::runs_on_cpu;
  kernel.supports = cpu::supports;
  kernel.prepare = [](Kernel& prepared, const DeviceDescription& device) {
    const cpu::LinearInt8Variant& variant = cpu::variant_for(device.features);
    prepared.run = [&variant](const KernelCall& call) { cpu::run_linear_int8(variant, call); };
    prepared.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      const Meta& x = *request.operands[0];
      const Meta& weight = *request.operands[2];
      const std::int64_t groups = weight.shape[1].number() / cpu::block_panel(*cpu::panel_kind(weight.dtype)).group;
      return align(x.shape[0] * Dim(groups * cpu::kTermBytes), 64) + cpu::panel_scratch_bytes(weight, threads);
    };
  };
  kernel.note = "panels of 32 columns over the threads; baseline avx2 avx512 vnni";
  registry.add(std::move(kernel));
}
