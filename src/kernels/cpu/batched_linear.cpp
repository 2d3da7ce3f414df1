// batched_linear on the CPU, with the panels of linear: heads times panels times blocks of up to 128 rows are shared
// among the threads. The rows of one head are as far apart as the heads of a row take.

#include <algorithm>

#include <fmt/core.h>

#include "kernels/cpu/lib/linear_calls.h"
#include "kernels/cpu/lib/panel_weight.h"
#include "kernels/cpu/lib/result_kind.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Verdict supports_heads(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[1];
  if (Verdict verdict = weight_verdict(weight); !verdict) return verdict;
  if (!float_kind(x.dtype)) return Verdict::no(fmt::format("no rows of {}", dtype_text(x.dtype)));
  const Shape strides = x.full_strides();
  const bool is_one_row = x.shape[0] == Dim(1), is_one_head = x.shape[1] == Dim(1);  // then a stride says nothing
  if (!(strides[2] == Dim(1)) || !(is_one_row || is_one_head || strides[0] == strides[1] * x.shape[1]))
    return Verdict::no("the heads of all rows are not equally far apart");
  return result_verdict(request.results[0]);
}

std::int64_t own_panel_bytes(DType weight, std::int64_t depth, bool is_packed) {
  return is_packed ? 0 : panel_bytes(*panel_kind(weight), depth);
}

Dim head_scratch_bytes(const LinearVariant& variant, int threads, const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[1];
  const std::int64_t depth = weight.shape[2].number();
  return x.shape[0] * x.shape[1] * Dim(wide_row_bytes(variant, x.dtype, weight.dtype, depth)) +
         Dim(threads * own_panel_bytes(weight.dtype, depth, !weight.packed.empty()));
}

// The output of a panel for the rows of one head from `row` on.
PanelOutput head_output(const TensorView& result, std::int64_t row, std::int64_t head, std::int64_t panel) {
  const FloatKind kind = *float_kind(result.dtype);
  const std::int64_t heads = result.size[1], columns = result.size[2], first = panel * kPanelColumns;
  const std::int64_t element = (row * heads + head) * columns + first;
  return {result.data + element * float_bytes(kind), heads * columns * float_bytes(kind), kind,
          static_cast<int>(std::min<std::int64_t>(kPanelColumns, columns - first)), nullptr};
}

}  // namespace

void run_batched_linear(const LinearVariant& variant, const KernelCall& call) {
  const TensorView &x = call.operands[0], &weight = call.operands[1], &result = call.results[0];
  const std::int64_t rows = x.size[0], heads = x.size[1], depth = x.size[2];
  const std::int64_t panels = panel_count(weight.size[1]);
  std::byte* free = call.scratch.data();
  const LinearRows all =
      linear_rows(variant, x, weight.dtype, rows * heads, heads == 1 ? x.stride[0] : x.stride[1], free, call.threads);
  free += rows * heads * wide_row_bytes(variant, x.dtype, weight.dtype, depth);
  const std::int64_t blocks = (rows + all.limit - 1) / all.limit;
  call.threads.run(blocks * heads * panels, [&](std::int64_t chunk, int thread) {
    const std::int64_t index = chunk % panels, head = chunk / panels % heads;
    const std::int64_t row = chunk / panels / heads * all.limit;
    const PanelWeight own = panel_weight(weight, head);
    const std::int64_t bytes = panel_bytes(own.kind, depth);
    const std::byte* panel = own.packed ? own.data + index * bytes : packed_panel(own, index, free + thread * bytes);
    LinearRows of_head = all;
    of_head.values += head * all.stride * (all.is_bfloat ? 2 : 4);
    of_head.stride *= heads;
    multiply_panel(variant, own.kind, panel, of_head, row, std::min(all.limit, rows - row),
                   head_output(result, row, head, index));
  });
}

}  // namespace weft::cpu

KERNELS(cpu, batched_linear) {
  Kernel kernel;
  kernel.op = "batched_linear";
  kernel.provider = "cpu";
  kernel.supported = cpu::runs_on_cpu;
  kernel.supports = cpu::supports_heads;
  kernel.prepare = [](Kernel& prepared, const DeviceDescription& device) {
    const cpu::LinearVariant variant = cpu::linear_variant(device);
    prepared.run = [variant](const KernelCall& call) { cpu::run_batched_linear(variant, call); };
    prepared.scratch_bytes = [variant, threads = device.threads](const KernelRequest& request) {
      return cpu::head_scratch_bytes(variant, threads, request);
    };
  };
  kernel.note = "heads times panels of 32 columns over the threads, f32 sums in k order";
  registry.add(std::move(kernel));
}
