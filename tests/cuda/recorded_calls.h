#pragma once

// The calls that vLLM recorded of ops that CUDA kernels compute.

#include "compiler/context.h"
#include "kernels/cuda/lib/mathematics.h"

namespace weft {

// Checks each call: the result of the kernels of that form in this Context, whose priorities are set to them, must be
// the recorded one within the record's own tolerance, and the kernels of each op must have taken the wanted number of
// calls. Returns the total number of calls that they took; other calls use other providers and are not checked.
int expect_recorded_calls(Context& context, cuda::Mathematics mathematics);

}  // namespace weft
