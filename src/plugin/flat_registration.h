#pragma once

// Converts ops, kernels and passes of the flat interface to Registrations. Everything is copied except functions and
// `state`.

#include "plugin/flat_host.h"

namespace weft {

// Each throws UserError for an obvious mistake, such as a null function.
void register_flat_op(weft_registry& registry, const weft_op& op);
void register_flat_kernel(weft_registry& registry, const weft_kernel& kernel);
void register_flat_pass(weft_registry& registry, const weft_pass& pass);

}  // namespace weft
