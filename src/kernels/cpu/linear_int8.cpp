// linear_int8 on the CPU: quantized rows times panels of weights of 2 to 8 bits.
//
// A pass over the rows first computes the terms of each group that the zero points need, 4 bytes per group. Then panels
// times blocks of up to 512 rows are shared among the threads, so each weight byte is read from memory once. One row
// reads as many bytes as the file has (q4_0: 0.56 per weight, q6_K: 0.82) and is bound by that. From 3 to 6 rows on,
// arithmetic is the bound. From 32 rows on AMX is faster than VNNI, where groups have 32 k. Weights of block types
// without a packing are packed panel by panel in each call.

#include "kernels/cpu/lib/int8_rows.h"
#include "kernels/cpu/lib/linear_calls.h"
#include "kernels/cpu/lib/panel_weight.h"
#include "kernels/cpu/lib/result_kind.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) {
  const Meta& weight = *request.operands[2];
  if (Verdict verdict = weight_verdict(weight); !verdict) return verdict;
  if (Verdict verdict = int8_rows_verdict(*request.operands[0], *request.operands[1], weight.dtype); !verdict)
    return verdict;
  return result_verdict(request.results[0]);
}

void run_tiles(const LinearInt8Variant& variant, const PanelWeight& weight, std::span<std::byte> panels,
               const KernelCall& call) {
  const TensorView& result = call.results[0];
  const Int8TileRows all =
      rows_for_tiles(call.operands[0], call.operands[1], weight.kind, call.scratch.data(), call.threads);
  for_each_panel(weight, all.rows, kInt8TileRowLimit, panels, call.threads,
                 [&](const std::byte* panel, std::int64_t index, RowBlock rows) {
                   variant.tile_panel(weight.kind, panel, part_of(all, rows.first, rows.count),
                                      panel_output(result, rows.first, index, nullptr));
                 });
}

}  // namespace

void run_linear_int8(const LinearInt8Variant& variant, const KernelCall& call) {
  const TensorView& codes = call.operands[0];
  const PanelWeight weight = panel_weight(call.operands[2]);
  const TensorView& result = call.results[0];
  const std::int64_t terms = term_scratch_bytes(weight.kind, weight.depth, codes.size[0]).number();
  const std::span<std::byte> panels = call.scratch.subspan(static_cast<std::size_t>(terms));
  if (multiplies_tiles(variant, weight.kind, codes.size[0])) return run_tiles(variant, weight, panels, call);
  const Int8Rows all =
      rows_with_terms(variant, codes, call.operands[1], weight.kind, call.scratch.data(), call.threads);
  for_each_panel(weight, all.rows, kInt8RowLimit, panels, call.threads,
                 [&](const std::byte* panel, std::int64_t index, RowBlock rows) {
                   variant.panel(weight.kind, panel, part_of(all, weight.kind, rows.first, rows.count),
                                 panel_output(result, rows.first, index, nullptr));
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
    const cpu::LinearInt8Variant variant = cpu::linear_int8_variant(device.features);
    prepared.run = [variant](const KernelCall& call) { cpu::run_linear_int8(variant, call); };
    prepared.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      const Meta& weight = *request.operands[2];
      return cpu::term_scratch_bytes(*cpu::panel_kind(weight.dtype), weight.shape[1].number(),
                                     request.operands[0]->shape[0]) +
             cpu::panel_scratch_bytes(weight, threads);
    };
  };
  kernel.note = "panels of 32 columns over the threads; baseline avx2 avx512 vnni amx";
  registry.add(std::move(kernel));
}
