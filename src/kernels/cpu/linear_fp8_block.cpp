// linear_fp8_block on the CPU: codes are multiplied by the scales of their blocks in f32, then come products and sums
// of the results.

#include "kernels/cpu/lib/scaled_linear.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

ScaleGrid scales_of_blocks(const TensorView& scale, std::int64_t rows, std::int64_t columns) {
  return {.data = scale.as<const float>(),
          .row_stride = scale.stride[0],
          .column_stride = scale.stride[1],
          .group_rows = rows,
          .group_columns = columns};
}

Verdict supports(const KernelRequest& request) {
  return supports_scaled_linear(request, {DType::f8e4m3, DType::f8e4m3fnuz}, /*weight=*/2, /*bias=*/4);
}

void run(const ScaledLinearKernels& kernels, const KernelCall& call) {
  const AttributeList& block = call.attributes.at("block").list();
  const std::int64_t rows = block[0].integer(), columns = block[1].integer();
  run_scaled_linear(kernels,
                    {.x = call.operands[0],
                     .weight = call.operands[2],
                     .bias = call.operands[4],
                     .result = call.results[0],
                     .x_scale = scales_of_blocks(call.operands[1], 1, columns),
                     .weight_scale = scales_of_blocks(call.operands[3], rows, columns),
                     .column_scale = {},
                     .row_scale = {}},
                    call);
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, linear_fp8_block) {
  using namespace weft::cpu;
  registry.add(scaled_linear_kernel<run>("linear_fp8_block", supports));
}
