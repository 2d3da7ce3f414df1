// linear_scaled on the CPU: sums of products of i8 or fp8 codes, exact for i8; then the scales of the column and of the
// row.

#include "kernels/cpu/lib/scaled_linear.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

// One scale, or one for each row of [rows, 1] or [rows].
ScaleGrid scales_of_rows(const TensorView& scale) {
  return {.data = scale.as<const float>(), .row_stride = scale.elements() == 1 ? 0 : scale.stride[0]};
}

Verdict supports(const KernelRequest& request) {
  return supports_scaled_linear(request, {DType::i8, DType::f8e4m3, DType::f8e4m3fnuz}, /*weight=*/2, /*bias=*/4);
}

void run(const ScaledLinearKernels& kernels, const KernelCall& call) {
  run_scaled_linear(kernels,
                    {.x = call.operands[0],
                     .weight = call.operands[2],
                     .bias = call.operands[4],
                     .result = call.results[0],
                     .x_scale = {},
                     .weight_scale = {},
                     .column_scale = scales_of_rows(call.operands[3]),
                     .row_scale = scales_of_rows(call.operands[1])},
                    call);
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, linear_scaled) {
  using namespace weft::cpu;
  registry.add(scaled_linear_kernel<run>("linear_scaled", supports));
}
