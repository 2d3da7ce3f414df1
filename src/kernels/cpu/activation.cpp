// silu_and_mul, gelu_and_mul, gelu_tanh_and_mul: the activation of a row's first half times its second half; and their
// quantization. Parallel over rows.

#include <fmt/core.h>

#include "kernels/cpu/lib/quantizing_epilogue.h"
#include "kernels/cpu/lib/row_wise_variant.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) { return float_rows(request.operands[0], "x"); }

template <Gate gate>
void run(const RowWiseKernels& kernels, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& output = call.results[0];
  const std::int64_t columns = output.size[output.rank - 1];
  const auto function = kernels.gated[static_cast<std::size_t>(gate)][static_cast<std::size_t>(element_of(x.dtype))];
  RowSpace({&output, &x}).run(call.threads, 3 * columns * dtype_info(x.dtype).block_bytes, [&](const RowRun& run) {
    function({.x = run.data[1],
              .output = run.data[0],
              .x_stride = run.stride[1],
              .output_stride = run.stride[0],
              .rows = run.count,
              .columns = columns});
  });
}

// Whether values are rounded to the dtype of x before they are quantized.
bool rounds(const KernelCall& call) { return call.attributes.at("intermediate").word() == "input_dtype"; }

Kernel quantized_gate_kernel(Gate gate, const char* op, const QuantizingEpilogue& epilogue) {
  const auto supports_quantized = [epilogue](const KernelRequest& request) {
    if (Verdict verdict = supports(request); !verdict) return verdict;
    return supports_waiting(epilogue, request, 1);
  };
  const auto run = [gate, epilogue](const QuantizedRowKernels& kernels, const KernelCall& call) {
    const TensorView& x = call.operands[0];
    const std::int64_t columns = x.size[x.rank - 1] / 2;
    const QuantTask quant = epilogue.task(call, 1, columns);
    const auto& gates = rounds(call) ? kernels.gated : kernels.gated_wide;
    const auto function = gates[static_cast<std::size_t>(gate)][static_cast<std::size_t>(element_of(x.dtype))];
    const RowSpace rows({&call.results[0], &epilogue.scales(call), &x});
    rows.run(call.threads, columns * (1 + 2 * dtype_info(x.dtype).block_bytes), [&](const RowRun& run) {
      function({.x = run.data[2], .x_stride = run.stride[2], .rows = run.count, .columns = columns},
               with_results(quant, run));
    });
  };
  return quantized_rows_kernel(op, epilogue, supports_quantized, run);
}

template <Gate gate>
Kernel gated_kernel(const char* op) {
  return {.op = op,
          .provider = "cpu",
          .supports = supports,
          .yields = yields(0, {DType::f32, DType::bf16}),
          .prepare = prepare_row_wise<run<gate>>,
          .note = kRowWiseNote};
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, activation) {
  using namespace weft::cpu;
  registry.add(gated_kernel<Gate::silu>("silu_and_mul"));
  registry.add(gated_kernel<Gate::gelu>("gelu_and_mul"));
  registry.add(gated_kernel<Gate::gelu_tanh>("gelu_tanh_and_mul"));
  for (const QuantizingEpilogue& epilogue : quantizing_epilogues()) {
    registry.add(quantized_gate_kernel(Gate::silu, "silu_and_mul", epilogue));
    registry.add(quantized_gate_kernel(Gate::gelu, "gelu_and_mul", epilogue));
    registry.add(quantized_gate_kernel(Gate::gelu_tanh, "gelu_tanh_and_mul", epilogue));
  }
}
