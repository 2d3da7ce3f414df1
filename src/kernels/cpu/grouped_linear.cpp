// grouped_linear on the CPU, with the panels of linear: adjacent rows of one expert are multiplied as by a linear of
// that expert's weight, and no other expert is read. Parts of up to 128 rows times panels are shared among the threads.

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/linear_calls.h"
#include "kernels/cpu/lib/panel_weight.h"
#include "kernels/cpu/lib/result_kind.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Verdict supports_groups(const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[1], &experts = *request.operands[2];
  const std::optional<Meta>& bias = request.operands[3];
  if (Verdict verdict = weight_verdict(weight); !verdict) return verdict;
  if (!float_kind(x.dtype)) return Verdict::no(fmt::format("no rows of {}", dtype_text(x.dtype)));
  if (!has_contiguous_rows(x)) return Verdict::no("the elements of a row are not contiguous");
  if (!experts.is_contiguous()) return Verdict::no("experts is not contiguous");
  if (bias && (!float_kind(bias->dtype) || !bias->is_contiguous()))
    return Verdict::no(fmt::format("no bias of {}", bias->text()));
  return result_verdict(request.results[0]);
}

// Adjacent rows of one expert.
struct ExpertRows {
  std::int64_t expert, first, count;
};

// How a call's scratch is divided; each part starts on a cache line.
struct GroupScratch {
  std::int64_t part;   // bytes for each row: a part has one row at least
  std::int64_t row;    // bytes that a row takes when widened; 0 if x is f32
  std::int64_t panel;  // bytes for each thread, of a panel that is packed during the call
};

GroupScratch group_scratch(DType x, PanelKind kind, std::int64_t depth, bool is_packed) {
  return {static_cast<std::int64_t>(sizeof(ExpertRows)),
          x == DType::f32 ? 0 : whole_cache_lines(depth * static_cast<std::int64_t>(sizeof(float))),
          is_packed ? 0 : panel_bytes(kind, depth)};
}

Dim group_scratch_bytes(int threads, const KernelRequest& request) {
  const Meta &x = *request.operands[0], &weight = *request.operands[1];
  const GroupScratch scratch =
      group_scratch(x.dtype, *panel_kind(weight.dtype), weight.shape[2].number(), !weight.packed.empty());
  return align(x.shape[0] * Dim(scratch.part), 64) + x.shape[0] * Dim(scratch.row) + Dim(threads * scratch.panel);
}

// Divides the rows into parts of equal experts of at most `limit` rows. Returns the number of parts.
std::int64_t find_parts(const TensorView& experts, std::int64_t expert_count, std::int64_t limit, ExpertRows* parts) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < experts.size[0]; ++row) {
    const std::int64_t expert = index_at(experts, row);
    USER_CHECK(expert >= 0 && expert < expert_count, "[grouped_linear] expert {} is outside [0, {})", expert,
               expert_count);
    if (count > 0 && parts[count - 1].expert == expert && parts[count - 1].count < limit) {
      ++parts[count - 1].count;
    } else {
      parts[count++] = {expert, row, 1};
    }
  }
  return count;
}

// The bias of one panel of an expert, as f32; columns of padding have none.
void widen_panel_bias(const LinearVariant& variant, const TensorView& bias, std::int64_t expert, std::int64_t panel,
                      float* to) {
  const FloatKind kind = *float_kind(bias.dtype);
  const std::int64_t first = panel * kPanelColumns, columns = bias.size[1];
  std::memset(to, 0, kPanelColumns * sizeof(float));
  variant.widen(kind, bias.data + (expert * columns + first) * float_bytes(kind), to,
                std::min<std::int64_t>(kPanelColumns, columns - first));
}

}  // namespace

void run_grouped_linear(const LinearVariant& variant, const KernelCall& call) {
  const TensorView &x = call.operands[0], &weight = call.operands[1], &experts = call.operands[2];
  const TensorView &bias = call.operands[3], &result = call.results[0];
  const std::int64_t rows = x.size[0], depth = weight.size[2], panels = panel_count(weight.size[1]);
  const PanelWeight first = panel_weight(weight, 0);
  const GroupScratch scratch = group_scratch(x.dtype, first.kind, depth, first.packed);

  std::byte* free = call.scratch.data();
  auto* const parts = reinterpret_cast<ExpertRows*>(free);
  free += whole_cache_lines(rows * scratch.part);
  // A plain weight's panels are packed for all rows of an expert at once.
  const std::int64_t count = find_parts(experts, weight.size[0], first.packed ? kFloatRowLimit : rows, parts);
  const auto* values = x.as<const float>();
  std::int64_t stride = x.stride[0];
  if (scratch.row > 0) {
    widen_rows(variant, x, rows, stride, free, scratch.row, call.threads);
    values = reinterpret_cast<const float*>(free);
    stride = scratch.row / static_cast<std::int64_t>(sizeof(float));
    free += rows * scratch.row;
  }

  call.threads.run(count * panels, [&](std::int64_t chunk, int thread) {
    const ExpertRows& part = parts[chunk / panels];
    const std::int64_t index = chunk % panels;
    const PanelWeight own = panel_weight(weight, part.expert);
    const std::byte* panel = own.packed ? own.data + index * panel_bytes(own.kind, depth)
                                        : packed_panel(own, index, free + thread * scratch.panel);
    float panel_bias[kPanelColumns];
    if (bias.present()) widen_panel_bias(variant, bias, part.expert, index, panel_bias);
    for (std::int64_t done = 0; done < part.count; done += kFloatRowLimit) {
      const std::int64_t row = part.first + done;
      variant.panel(own.kind, panel,
                    {values + row * stride, stride, depth, std::min(kFloatRowLimit, part.count - done)},
                    panel_output(result, row, index, bias.present() ? panel_bias : nullptr));
    }
  });
}

}  // namespace weft::cpu

KERNELS(cpu, grouped_linear) {
  Kernel kernel;
  kernel.op = "grouped_linear";
  kernel.provider = "cpu";
  kernel.supported = cpu::runs_on_cpu;
  kernel.supports = cpu::supports_groups;
  kernel.prepare = [](Kernel& prepared, const DeviceDescription& device) {
    const cpu::LinearVariant& variant = cpu::linear_variant(device.features);
    prepared.run = [&variant](const KernelCall& call) { cpu::run_grouped_linear(variant, call); };
    prepared.scratch_bytes = [threads = device.threads](const KernelRequest& request) {
      return cpu::group_scratch_bytes(threads, request);
    };
  };
  kernel.note = "parts of equal experts times panels of 32 columns over the threads, f32 sums in k order";
  registry.add(std::move(kernel));
}
