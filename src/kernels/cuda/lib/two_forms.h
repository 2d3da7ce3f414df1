#pragma once

// Ops whose kernels exist in two forms: each is offered by the provider of the form it is called for.

#include "kernels/cuda/lib/mathematics.h"
#include "kernels/registry.h"

namespace weft::cuda {

void add_rms_norm(KernelRegistry& registry, Mathematics mathematics);
void add_silu_and_mul(KernelRegistry& registry, Mathematics mathematics);

}  // namespace weft::cuda
