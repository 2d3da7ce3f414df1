#pragma once

// Registers the ops of silu_and_mul_per_block_quant.h for a provider, in one of its designs and forms.

#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"
#include "kernels/registry.h"

namespace weft::cuda {

void add_silu_and_mul_per_block_quant(KernelRegistry& registry, const char* provider, SiluAndMulDesign design,
                                      Mathematics mathematics);

}  // namespace weft::cuda
