#pragma once

// An opaque op has a shape rule and kernels, but no meaning. One of its kernels runs wherever a meaning would: as the
// last candidate when a kernel is chosen, and in the interpreter.

#include "ir/op.h"
#include "kernels/kernel.h"

namespace weft {

// Returns the kernel as provider `reference`, which accepts every device and call and overwrites nothing. What the
// kernel itself refuses is a UserError at the call, because there is no other candidate; so is a kernel that is not
// batch-invariant if `batch_invariant` is required.
Kernel opaque_reference(const Op& op, const Kernel& kernel, bool batch_invariant);

}  // namespace weft
