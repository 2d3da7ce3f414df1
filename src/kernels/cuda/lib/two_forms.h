#pragma once

// Registers ops whose kernels exist in two forms: the provider of each form calls these.

#include "kernels/cuda/lib/mathematics.h"
#include "kernels/registry.h"

namespace weft::cuda {

void add_rms_norm(KernelRegistry& registry, Mathematics mathematics);
void add_silu_and_mul(KernelRegistry& registry, Mathematics mathematics);

}  // namespace weft::cuda
