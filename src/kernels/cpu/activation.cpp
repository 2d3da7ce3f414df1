// silu_and_mul, gelu_and_mul, gelu_tanh_and_mul: the activation of a row's first half times its second half; and their
// quantisation. Parallel over rows.

#include "kernels/cpu/lib/group_quant.h"
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

Verdict supports_groups(const KernelRequest& request) {
  if (Verdict verdict = supports(request); !verdict) return verdict;
  return waiting_groups(request);
}

template <Gate gate>
void run_groups(const QuantisedRowKernels& kernels, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const std::int64_t columns = x.size[x.rank - 1] / 2;
  const GroupQuantTask quant = group_quant_task(call, columns);
  const auto function =
      kernels.gated_groups[static_cast<std::size_t>(gate)][static_cast<std::size_t>(element_of(x.dtype))];
  const RowSpace rows({&call.results[0], &call.results[1], &x});
  rows.run(call.threads, columns * (1 + 2 * dtype_info(x.dtype).block_bytes), [&](const RowRun& run) {
    function({.x = run.data[2], .x_stride = run.stride[2], .rows = run.count, .columns = columns},
             with_results(quant, run));
  });
}

template <Gate gate>
Kernel gated_groups_kernel(const char* op) {
  return {.op = op,
          .provider = "cpu",
          .supports = supports_groups,
          .prepare = prepare_quantised_rows<run_groups<gate>>,
          .note = kRowWiseNote};
}

template <Gate gate>
Kernel gated_kernel(const char* op) {
  return {
      .op = op, .provider = "cpu", .supports = supports, .prepare = prepare_row_wise<run<gate>>, .note = kRowWiseNote};
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, activation) {
  using namespace weft::cpu;
  registry.add(gated_kernel<Gate::silu>("silu_and_mul"));
  registry.add(gated_kernel<Gate::gelu>("gelu_and_mul"));
  registry.add(gated_kernel<Gate::gelu_tanh>("gelu_tanh_and_mul"));
  registry.add(gated_groups_kernel<Gate::silu>("silu_and_mul_per_token_group_quant_int8"));
  registry.add(gated_groups_kernel<Gate::gelu>("gelu_and_mul_per_token_group_quant_int8"));
  registry.add(gated_groups_kernel<Gate::gelu_tanh>("gelu_tanh_and_mul_per_token_group_quant_int8"));
}
