// silu_and_mul with quantization per group as the kernel was first published, for comparison; docs/cuda-silu-quant.md
// leads from it to the design of provider cuda. It has the bits of the op's meaning, as cuda_house; weft_device_check
// times it with the device's mathematics.

#include "kernels/cuda/lib/silu_and_mul_per_block_quant_kernel.h"

KERNELS(cuda_tree, activation) {
  using namespace weft::cuda;
  add_silu_and_mul_per_block_quant(registry, "cuda_tree", SiluAndMulDesign::tree, Mathematics::house);
}
