#include "kernels/cuda/lib/silu_and_mul_per_block_quant_kernel.h"

#include <fmt/core.h>

#include "kernels/cuda/emulator/run_call.h"
#include "kernels/cuda/lib/group_rules.h"

namespace weft::cuda {
namespace {

SiluAndMulPerBlockQuant described(DType x, DType codes, const Attributes& attributes) {
  return {.x = x,
          .codes = codes,
          .group_size = attributes.at("group_size").integer(),
          .rounds = attributes.at("intermediate").word() == "input_dtype",
          .truncates = truncates(attributes)};
}

Verdict supports(SiluAndMulDesign design, const KernelRequest& request) {
  if (Verdict verdict = float_matrix(request.operands[0], "x"); !verdict) return verdict;
  if (!described(request.operands[0]->dtype, request.results[0].dtype, request.attributes).takes_group())
    return Verdict::no(fmt::format("groups have {} columns; 64 or 128 do, or 32 of int8",
                                   request.attributes.at("group_size").integer()));
  if (design == SiluAndMulDesign::tree && truncates(request.attributes))
    return Verdict::no("rounds toward_zero; nearest is supported");
  return supports_groups(request, 1);
}

void run(SiluAndMulDesign design, Mathematics mathematics, const KernelCall& call) {
  const TensorView& x = call.operands[0];
  const TensorView& codes = call.results[0];
  SiluAndMulPerBlockQuant kernel = described(x.dtype, codes.dtype, call.attributes);
  kernel.design = design;
  kernel.mathematics = mathematics;
  check_sides(kernel.kernel_name(), x);
  SiluAndMulPerBlockQuantArguments arguments{.x = x.data,
                                             .codes = codes.data,
                                             .places = scale_places(call.results[1]),
                                             .rule = group_rule(call, 1),
                                             .rows = static_cast<std::uint32_t>(codes.size[0]),
                                             .columns = static_cast<std::uint32_t>(codes.size[1])};
  const LaunchShape shape = kernel.plan(arguments);
  run_call(kernel.kernel_name(), shape, arguments, call);
}

}  // namespace

void add_silu_and_mul_per_block_quant(KernelRegistry& registry, const char* provider, SiluAndMulDesign design,
                                      Mathematics mathematics) {
  for (const char* op : {"silu_and_mul_per_token_group_quant_fp8", "silu_and_mul_per_token_group_quant_int8"})
    registry.add({.op = op,
                  .provider = provider,
                  .supported = supported,
                  .supports = [=](const KernelRequest& request) { return supports(design, request); },
                  .vector_bytes = 16,
                  .run = [=](const KernelCall& call) { run(design, mathematics, call); },
                  .note = design == SiluAndMulDesign::fast ? "sub-warps of 2, 4 or 8 lanes a group, 16 elements a lane"
                                                           : "a block a group, a thread an element"});
}

}  // namespace weft::cuda
