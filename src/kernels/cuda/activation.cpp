// silu_and_mul with quantization per group, in the fast design; lib/silu_and_mul_per_block_quant.h explains both
// designs.

#include "kernels/cuda/lib/silu_and_mul_per_block_quant_kernel.h"

KERNELS(cuda, activation) {
  using namespace weft::cuda;
  add_silu_and_mul_per_block_quant(registry, "cuda", SiluAndMulDesign::fast, Mathematics::device);
}
