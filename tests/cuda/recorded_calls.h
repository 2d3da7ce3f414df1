#pragma once

// The calls that vLLM recorded of ops that CUDA kernels compute.

#include "compiler/context.h"
#include "kernels/cuda/lib/mathematics.h"

namespace weft {

// Each as a test: what the kernels of that form give in this Context, whose priorities are set to them, must be what
// was recorded, within the record's own tolerance; and each op's kernels must have taken as many as they can. How many
// calls they took in all; those that they do not take go to other providers and are not looked at.
int expect_recorded_calls(Context& context, cuda::Mathematics mathematics);

}  // namespace weft
