// silu_and_mul with quantization per group, in the fast design, with reference math.

#include "kernels/cuda/lib/silu_and_mul_per_block_quant_kernel.h"

KERNELS(cuda_house, activation) {
  using namespace weft::cuda;
  add_silu_and_mul_per_block_quant(registry, "cuda_house", SiluAndMulDesign::fast, Mathematics::house);
}
