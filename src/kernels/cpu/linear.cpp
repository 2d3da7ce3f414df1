// linear on the CPU, exact: f32 sums in k order over f32, 16-bit or block weights, which are widened panel by panel.
//
// Rows that are not f32 are widened first. Panels times blocks of up to 128 rows are shared among the threads. One row
// is bound by reading the weights. Rows and weights of bf16 are multiplied as they are, where there is a function for
// it.

#include <cstring>

#include <fmt/core.h>

#include "kernels/cpu/lib/linear_calls.h"
#include "kernels/cpu/lib/panel_weight.h"
#include "kernels/cpu/lib/result_kind.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  const Meta& weight = *request.operands[1];
  const std::optional<Meta>& bias = request.operands[2];
  if (Verdict verdict = weight_verdict(weight); !verdict) return verdict;
  if (!float_kind(x.dtype)) return Verdict::no(fmt::format("no rows of {}", dtype_text(x.dtype)));
  if (x.rank() == 0 || !has_contiguous_rows(x)) return Verdict::no("the elements of a row are not contiguous");
  if (x.rank() > 2 && !x.is_contiguous()) return Verdict::no("x has more than two dims and is not contiguous");
  if (bias && (!float_kind(bias->dtype) || !bias->is_contiguous()))
    return Verdict::no(fmt::format("no bias of {}", bias->text()));
  return result_verdict(request.results[0]);
}

// A weight of blocks is rounded while it is read, and one of bf16 is rounded already.
Verdict supports_rounded(const KernelRequest& request) {
  if (Verdict verdict = rounded_weight_verdict(*request.operands[1]); !verdict) return verdict;
  return supports(request);
}

// How a call's scratch is divided; each part starts on a cache line.
struct Scratch {
  std::int64_t bias;  // bytes
  std::int64_t row;   // bytes a row takes when widened; 0 if it is not
};

Scratch scratch_of(const LinearVariant& variant, DType x, DType weight, bool has_bias, std::int64_t columns,
                   std::int64_t depth) {
  return {has_bias ? panel_count(columns) * kPanelColumns * static_cast<std::int64_t>(sizeof(float)) : 0,
          wide_row_bytes(variant, x, weight, depth)};
}

Dim scratch_bytes(const LinearVariant& variant, int threads, const KernelRequest& request) {
  const Meta& x = *request.operands[0];
  const Meta& weight = *request.operands[1];
  const Scratch scratch = scratch_of(variant, x.dtype, weight.dtype, request.operands[2].has_value(),
                                     weight.shape[0].number(), weight.shape[1].number());
  Dim rows = 1;
  for (std::size_t i = 0; i + 1 < x.rank(); ++i) rows = rows * x.shape[i];
  return rows * Dim(scratch.row) + Dim(scratch.bias) + panel_scratch_bytes(weight, threads);
}

// bias, padded to whole panels, as f32.
const float* widen_bias(const LinearVariant& variant, const TensorView& bias, std::byte* to, std::int64_t bytes) {
  if (!bias.present()) return nullptr;
  std::memset(to, 0, static_cast<std::size_t>(bytes));
  variant.widen(*float_kind(bias.dtype), bias.data, reinterpret_cast<float*>(to), bias.size[0]);
  return reinterpret_cast<const float*>(to);
}

}  // namespace

LinearVariant linear_variant(const DeviceDescription& device) {
  const CpuFeatures features = device.features;
  if (features < CpuFeatures::avx512) return features == CpuFeatures::avx2 ? kLinearAvx2 : kLinearBaseline;
  LinearVariant variant = kLinearAvx512;
  if (features >= CpuFeatures::avx512_bf16 && device.fast_bf16_dots) variant.bfloats = kBfloatAvx512Bf16;
  if (features >= CpuFeatures::amx) {
    // One or two rows are bound by reading the weights, which multiply-adds do 5 to 15 % faster than tiles (measured on
    // Sapphire Rapids).
    variant.few_bfloats = {kLinearAvx512.bfloats.panel, 2};
    variant.bfloats = kBfloatAmx;
    variant.few_rounded = {kLinearAvx512.rounded.panel, 2};
    variant.rounded = kRoundedAmx;
  }
  return variant;
}

Verdict rounded_weight_verdict(const Meta& weight) {
  if (is_block(weight.dtype) || weight.dtype == DType::bf16) return Verdict::yes();
  return Verdict::no(fmt::format("no rounding of a weight of {}", dtype_text(weight.dtype)));
}

LinearVariant rounding_variant(const DeviceDescription& device) {
  LinearVariant variant = linear_variant(device);
  variant.rounds_weights = true;
  return variant;
}

bool multiplies_bfloats(const LinearVariant& variant, DType x, DType weight, std::int64_t depth) {
  if (variant.rounds_weights && is_block(weight)) return variant.rounded.panel != nullptr;
  return variant.bfloats.panel != nullptr && x == DType::bf16 && weight == DType::bf16 && depth % 2 == 0;
}

std::int64_t wide_row_bytes(const LinearVariant& variant, DType x, DType weight, std::int64_t depth) {
  const bool stays = x == DType::f32 || multiplies_bfloats(variant, x, weight, depth);
  return stays ? 0 : whole_cache_lines(depth * static_cast<std::int64_t>(sizeof(float)));
}

LinearRows linear_rows(const LinearVariant& variant, const TensorView& x, DType weight, std::int64_t rows,
                       std::int64_t stride, std::byte* to, ThreadPool& threads) {
  constexpr std::int64_t kRowsOfChunk = 16;
  const std::int64_t depth = x.size[x.rank - 1], row_bytes = wide_row_bytes(variant, x.dtype, weight, depth);
  const bool is_bfloat = multiplies_bfloats(variant, x.dtype, weight, depth);
  const std::int64_t bfloat_limit = is_block(weight) ? variant.rounded.row_limit : variant.bfloats.row_limit;
  if (row_bytes == 0) return {x.data, stride, depth, is_bfloat, is_bfloat ? bfloat_limit : kFloatRowLimit};
  const FloatKind kind = *float_kind(x.dtype);
  threads.run((rows + kRowsOfChunk - 1) / kRowsOfChunk, [&](std::int64_t chunk, int) {
    for (std::int64_t row = chunk * kRowsOfChunk; row < std::min(rows, (chunk + 1) * kRowsOfChunk); ++row)
      variant.widen(kind, x.data + row * stride * float_bytes(kind), reinterpret_cast<float*>(to + row * row_bytes),
                    depth);
  });
  return {to, row_bytes / static_cast<std::int64_t>(sizeof(float)), depth, false, kFloatRowLimit};
}

void multiply_panel(const LinearVariant& variant, PanelKind kind, const std::byte* panel, const LinearRows& rows,
                    std::int64_t first, std::int64_t count, const PanelOutput& output) {
  if (rows.is_bfloat) {
    const auto* values = reinterpret_cast<const std::uint16_t*>(rows.values) + first * rows.stride;
    const BfloatRows some{values, rows.stride, rows.depth, count};
    if (kind == PanelKind::bf16)
      return (count <= variant.few_bfloats.row_limit ? variant.few_bfloats : variant.bfloats)
          .panel(panel, some, output);
    return (count <= variant.few_rounded.row_limit ? variant.few_rounded : variant.rounded)
        .panel(kind, panel, some, output);
  }
  const auto* values = reinterpret_cast<const float*>(rows.values) + first * rows.stride;
  variant.panel(kind, panel, {values, rows.stride, rows.depth, count, variant.rounds_weights && is_group_kind(kind)},
                output);
}

void run_linear(const LinearVariant& variant, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const PanelWeight weight = panel_weight(call.operands[1]);
  const TensorView& bias = call.operands[2];
  const TensorView& result = call.results[0];
  const Scratch scratch =
      scratch_of(variant, x.dtype, call.operands[1].dtype, bias.present(), weight.columns, weight.depth);
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) rows *= x.size[i];

  std::byte* free = call.scratch.data();
  const float* wide_bias = widen_bias(variant, bias, free, scratch.bias);
  free += scratch.bias;
  const LinearRows wide = linear_rows(variant, x, call.operands[1].dtype, rows,
                                      x.rank == 2 ? x.stride[0] : weight.depth, free, call.threads);
  free += rows * scratch.row;

  const std::span<std::byte> panels(free, call.scratch.data() + call.scratch.size());
  for_each_panel(weight, rows, wide.limit, panels, call.threads,
                 [&](const std::byte* panel, std::int64_t index, RowBlock block) {
                   const float* panel_bias = wide_bias == nullptr ? nullptr : wide_bias + index * kPanelColumns;
                   multiply_panel(variant, weight.kind, panel, wide, block.first, block.count,
                                  panel_output(result, block.first, index, panel_bias));
                 });
}

}  // namespace weft::cpu

KERNELS(cpu, linear) {
  const auto add = [&](const char* op, cpu::LinearVariant (*variant_for)(const DeviceDescription&),
                       Verdict (*supports)(const KernelRequest&), const char* note) {
    Kernel kernel;
    kernel.op = op;
    kernel.provider = "cpu";
    kernel.supported = cpu::runs_on_cpu;
    kernel.supports = supports;
    kernel.prepare = [variant_for](Kernel& prepared, const DeviceDescription& device) {
      const cpu::LinearVariant variant = variant_for(device);
      prepared.run = [variant](const KernelCall& call) { cpu::run_linear(variant, call); };
      prepared.scratch_bytes = [variant, threads = device.threads](const KernelRequest& request) {
        return cpu::scratch_bytes(variant, threads, request);
      };
    };
    kernel.note = note;
    registry.add(std::move(kernel));
  };
  add("linear", cpu::linear_variant, cpu::supports,
      "panels of 32 columns over the threads, f32 sums in k order; bf16 in the order of AMX; baseline avx2 avx512 bf16 "
      "amx");
  add("linear_bf16", cpu::rounding_variant, cpu::supports_rounded,
      "as linear, with weights of blocks rounded to bf16 while they are read; baseline avx2 avx512 amx");
}
