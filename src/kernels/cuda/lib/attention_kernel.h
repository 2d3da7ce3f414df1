#pragma once

// Registers the op attention for a provider, in one of its designs.

#include "kernels/cuda/lib/attention_plan.h"
#include "kernels/registry.h"

namespace weft::cuda {

void add_attention(KernelRegistry& registry, const char* provider, AttentionDesign design);

}  // namespace weft::cuda
