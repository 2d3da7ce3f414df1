// embedding on the CPU: rows of a plain or packed weight, converted to the result's type. Blocks of tokens are shared
// among the threads; a token moves one row of the weight.

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/panel_weight.h"
#include "kernels/cpu/lib/result_kind.h"
#include "kernels/registry.h"
#include "tensor/convert.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) {
  const Meta& ids = *request.operands[0];
  if (Verdict verdict = weight_verdict(*request.operands[1]); !verdict) return verdict;
  if ((ids.dtype != DType::i32 && ids.dtype != DType::i64) || ids.rank() != 1 || !ids.is_contiguous())
    return Verdict::no(fmt::format("wants contiguous ids i32[rows] or i64[rows], but is {}", ids.text()));
  return result_verdict(request.results[0]);
}

void write_row(const PanelWeight& weight, std::int64_t row, DType result, std::byte* to) {
  if (!weight.packed) {
    const std::byte* plain = weight.data + row * bytes_of(weight.dtype, weight.depth);
    convert_row(weight.dtype, plain, result, to, weight.depth);
    return;
  }
  for (std::int64_t k = 0; k < weight.depth; k += kGroupDepth) {
    const std::int64_t count = std::min<std::int64_t>(kGroupDepth, weight.depth - k);
    float values[kGroupDepth];
    read_row(weight, row, k, count, values);
    convert_row(DType::f32, reinterpret_cast<const std::byte*>(values), result, to + bytes_of(result, k), count);
  }
}

void run(const KernelCall& call) {
  const TensorView& ids = call.operands[0];
  const PanelWeight weight = panel_weight(call.operands[1]);
  const TensorView& result = call.results[0];
  const std::int64_t rows = ids.size[0];
  constexpr std::int64_t kRowsOfChunk = 16;
  call.threads.run((rows + kRowsOfChunk - 1) / kRowsOfChunk, [&](std::int64_t chunk, int) {
    for (std::int64_t i = chunk * kRowsOfChunk; i < std::min(rows, (chunk + 1) * kRowsOfChunk); ++i) {
      const std::int64_t id = index_at(ids, i);
      USER_CHECK(id >= 0 && id < weight.columns, "[embedding] id {} is outside [0, {})", id, weight.columns);
      write_row(weight, id, result.dtype, result.data + bytes_of(result.dtype, i * weight.depth));
    }
  });
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, embedding) {
  Kernel kernel;
  kernel.op = "embedding";
  kernel.provider = "cpu";
  kernel.supported = cpu::runs_on_cpu;
  kernel.supports = cpu::supports;
  kernel.run = cpu::run;
  kernel.note = "blocks of 16 tokens over the threads";
  registry.add(std::move(kernel));
}
