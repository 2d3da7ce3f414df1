#pragma once

// The calls that vLLM recorded of ops that provider cuda computes.

#include "compiler/context.h"

namespace weft {

// Each as a test: what the provider's kernels give in this Context, whose priorities are set to it, must be what was
// recorded, as far as the record says. How many calls its kernels took; others go to other providers.
int expect_recorded_calls(Context& context);

}  // namespace weft
