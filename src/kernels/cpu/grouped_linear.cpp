// grouped_linear and grouped_linear_int8 on the CPU, with the panels of linear and linear_int8: adjacent rows of one
// expert are multiplied as by a linear of that expert's weight, and no other expert is read. Blocks of rows times
// panels are shared among the threads.

#include <fmt/core.h>

#include "kernels/cpu/lib/expert_panels.h"
#include "kernels/cpu/lib/int8_rows.h"
#include "kernels/cpu/lib/linear_calls.h"
#include "kernels/cpu/lib/result_kind.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

// Bytes of one slot for each thread, in which a plain stack's panels are packed; 0 for a packed one.
std::int64_t slot_bytes(const Meta& weight, int threads) {
  return weight.packed.empty() ? threads * panel_bytes(*panel_kind(weight.dtype), weight.shape[2].number()) : 0;
}

// ---- grouped_linear ----

Verdict supports_floats(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[1];
  if (Verdict verdict = weight_verdict(weight); !verdict) return verdict;
  if (!float_kind(x.dtype)) return Verdict::no(fmt::format("no rows of {}", dtype_text(x.dtype)));
  if (!has_contiguous_rows(x)) return Verdict::no("the elements of a row are not contiguous");
  if (Verdict verdict = experts_verdict(*request.operands[2], request.operands[3]); !verdict) return verdict;
  return result_verdict(request.results[0]);
}

Verdict supports_rounded(const KernelRequest& request) {
  if (Verdict verdict = rounded_weight_verdict(*request.operands[1]); !verdict) return verdict;
  return supports_floats(request);
}

Dim scratch_of_floats(const LinearVariant& variant, int threads, const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[1];
  return align(x.shape[0] * Dim(kExpertRowBytes), 64) +
         x.shape[0] * Dim(wide_row_bytes(variant, x.dtype, weight.dtype, weight.shape[2].number())) +
         Dim(slot_bytes(weight, threads));
}

// ---- grouped_linear_int8 ----

Verdict supports_codes(const KernelRequest& request) {
  const Meta& weight = *request.operands[2];
  if (Verdict verdict = weight_verdict(weight); !verdict) return verdict;
  if (Verdict verdict = int8_rows_verdict(*request.operands[0], *request.operands[1], weight.dtype); !verdict)
    return verdict;
  if (Verdict verdict = experts_verdict(*request.operands[3], request.operands[4]); !verdict) return verdict;
  return result_verdict(request.results[0]);
}

Dim scratch_of_codes(int threads, const KernelRequest& request) {
  const Meta& weight = *request.operands[2];
  const Dim& rows = request.operands[0]->shape[0];
  const std::int64_t terms = row_term_bytes(*panel_kind(weight.dtype), weight.shape[2].number());
  return align(rows * Dim(kExpertRowBytes), 64) + align(rows * Dim(terms), 64) + Dim(slot_bytes(weight, threads));
}

}  // namespace

void run_grouped_linear(const LinearVariant& variant, const KernelCall& call) {
  const TensorView &x = call.operands[0], &weight = call.operands[1], &result = call.results[0];
  const std::int64_t rows = x.size[0], depth = weight.size[2];
  const PanelKind kind = panel_weight(weight, 0).kind;
  std::byte* const parts = call.scratch.data();
  std::byte* const widened = parts + whole_cache_lines(rows * kExpertRowBytes);
  std::byte* const slots = widened + rows * wide_row_bytes(variant, x.dtype, weight.dtype, depth);
  const LinearRows all = linear_rows(variant, x, weight.dtype, rows, x.stride[0], widened, call.threads);
  for_each_expert_panel({"grouped_linear", weight, call.operands[2], call.operands[3], all.limit, parts, slots},
                        call.threads,
                        [&](const std::byte* panel, std::int64_t index, RowBlock block, const float* bias) {
                          multiply_panel(variant, kind, panel, all, block.first, block.count,
                                         panel_output(result, block.first, index, bias));
                        });
}

void run_grouped_linear_int8(const LinearInt8Variant& variant, const KernelCall& call) {
  const TensorView &codes = call.operands[0], &weight = call.operands[2], &result = call.results[0];
  const std::int64_t rows = codes.size[0];
  const PanelKind kind = panel_weight(weight, 0).kind;
  std::byte* const parts = call.scratch.data();
  std::byte* const terms = parts + whole_cache_lines(rows * kExpertRowBytes);
  std::byte* const slots = terms + whole_cache_lines(rows * row_term_bytes(kind, weight.size[2]));
  const Int8Rows all = rows_with_terms(variant, codes, call.operands[1], kind, terms, call.threads);
  for_each_expert_panel(
      {"grouped_linear_int8", weight, call.operands[3], call.operands[4], kInt8RowLimit, parts, slots}, call.threads,
      [&](const std::byte* panel, std::int64_t index, RowBlock block, const float* bias) {
        variant.panel(kind, panel, part_of(all, kind, block.first, block.count),
                      panel_output(result, block.first, index, bias));
      });
}

}  // namespace weft::cpu

KERNELS(cpu, grouped_linear) {
  const auto add = [&](const char* op, cpu::LinearVariant (*variant_for)(const DeviceDescription&),
                       Verdict (*supports)(const KernelRequest&), const char* note) {
    Kernel floats;
    floats.op = op;
    floats.provider = "cpu";
    floats.supported = cpu::runs_on_cpu;
    floats.supports = supports;
    floats.prepare = [variant_for](Kernel& prepared, const DeviceDescription& device) {
      const cpu::LinearVariant variant = variant_for(device);
      prepared.run = [variant](const KernelCall& call) { cpu::run_grouped_linear(variant, call); };
      prepared.scratch_bytes = [variant, threads = device.threads](const KernelRequest& request) {
        return cpu::scratch_of_floats(variant, threads, request);
      };
    };
    floats.note = note;
    registry.add(std::move(floats));
  };
  add("grouped_linear", cpu::linear_variant, cpu::supports_floats,
      "blocks of rows of one expert times panels of 32 columns over the threads, f32 sums in k order");
  add("grouped_linear_bf16", cpu::rounding_variant, cpu::supports_rounded,
      "as grouped_linear, with weights of blocks rounded to bf16 while they are read");

  Kernel codes;
  codes.op = "grouped_linear_int8";
  codes.provider = "cpu";
  codes.supported = cpu::runs_on_cpu;
  codes.supports = cpu::supports_codes;
  codes.prepare = [](Kernel& prepared, const DeviceDescription& device) {
    const cpu::LinearInt8Variant variant = cpu::linear_int8_variant(device.features);
    prepared.run = [variant](const KernelCall& call) { cpu::run_grouped_linear_int8(variant, call); };
    prepared.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      return cpu::scratch_of_codes(threads, request);
    };
  };
  codes.note = "blocks of rows of one expert times panels of 32 columns over the threads; baseline avx2 avx512 vnni";
  registry.add(std::move(codes));
}
