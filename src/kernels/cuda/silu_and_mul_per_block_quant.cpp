// silu_and_mul with quantization per group; lib/silu_and_mul_per_block_quant.h explains both designs.

#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"

#include <array>

#include <fmt/core.h>

#include "kernels/cuda/lib/group_rules.h"
#include "kernels/cuda/lib/run_call.h"
#include "kernels/registry.h"

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

struct Form {
  const char* provider;
  SiluAndMulDesign design;
  Mathematics mathematics;
};
// cuda_tree has the kernel as it was first published, for comparison: docs/cuda-silu-quant.md leads from it to the fast
// design. It has the bits of the op's meaning, as cuda_reference; weft_device_check times it with the device's
// mathematics.
constexpr std::array kForms = {
    Form{provider_of(Mathematics::device), SiluAndMulDesign::fast, Mathematics::device},
    Form{provider_of(Mathematics::reference), SiluAndMulDesign::fast, Mathematics::reference},
    Form{"cuda_tree", SiluAndMulDesign::tree, Mathematics::reference},
};

Kernel kernel_of(const char* op, const Form& form) {
  return {.op = op,
          .provider = form.provider,
          .supported = supported,
          .supports = [design = form.design](const KernelRequest& request) { return supports(design, request); },
          .vector_bytes = 16,
          .run = [form](const KernelCall& call) { run(form.design, form.mathematics, call); },
          .note = form.design == SiluAndMulDesign::fast ? "sub-warps of 2, 4 or 8 lanes a group, 16 elements a lane"
                                                        : "a block a group, a thread an element"};
}

}  // namespace
}  // namespace weft::cuda

KERNELS(cuda, silu_and_mul_per_block_quant) {
  for (const char* op : {"silu_and_mul_per_token_group_quant_fp8", "silu_and_mul_per_token_group_quant_int8"})
    for (const auto& form : weft::cuda::kForms) registry.add(weft::cuda::kernel_of(op, form));
}
