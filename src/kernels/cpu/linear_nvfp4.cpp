// linear_nvfp4 on the CPU: codes times the scales of their blocks of 16 in f32, then the two global scales on the sums.

#include "kernels/cpu/lib/scaled_linear.h"
#include "kernels/registry.h"
#include "tensor/quant_key.h"

namespace weft::cpu {
namespace {

Verdict supports(const KernelRequest& request) {
  if (request.attributes.at("swizzled_scales").boolean()) return Verdict::no("scales are swizzled");
  if (request.attributes.at("intermediate").word() != "f32") return Verdict::no("intermediate is not f32");
  return supports_scaled_linear(request, {DType::f4e2m1}, 3, 6);
}

ScaleGrid scales_of_blocks(const TensorView& scale) {
  return {.small = scale.as<const std::uint8_t>(),
          .row_stride = scale.stride[0],
          .column_stride = scale.stride[1],
          .group_columns = kNvfp4Group};
}

void run(const ScaledLinearKernels& kernels, const KernelCall& call) {
  const float factor = *call.operands[5].as<const float>() / *call.operands[2].as<const float>();
  run_scaled_linear(kernels,
                    {.x = call.operands[0],
                     .weight = call.operands[3],
                     .bias = call.operands[6],
                     .result = call.results[0],
                     .x_scale = scales_of_blocks(call.operands[1]),
                     .weight_scale = scales_of_blocks(call.operands[4]),
                     .column_scale = {},
                     .row_scale = {.data = &factor}},
                    call);
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, linear_nvfp4) {
  using namespace weft::cpu;
  registry.add(scaled_linear_kernel<run>("linear_nvfp4", supports));
}
