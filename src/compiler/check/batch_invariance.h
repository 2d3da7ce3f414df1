#pragma once

// Lists the kernels that --batch-invariant switches off.

#include <string>
#include <vector>

#include "compiler/context.h"

namespace weft {

// Returns one sentence for each provider on the priority lists that has kernels which do not declare batch_invariant,
// or one sentence that says there is no such provider. Empty where the option is off.
//   --batch-invariant switches off openblas for linear: a row's result could depend on the other rows of its batch
std::vector<std::string> switched_off_by_batch_invariance(const Context& context);

}  // namespace weft
