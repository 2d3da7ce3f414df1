#pragma once

// An opaque op has a shape rule and kernels, but no meaning. Wherever a meaning would run, as the last resort of the
// choice and in the interpreter, one of its kernels does.

#include "ir/op.h"
#include "kernels/kernel.h"

namespace weft {

// The kernel as provider `reference`: for every device and call, writing over nothing. What the kernel refuses, and
// what `batch_invariant` forbids when it must hold, is a UserError at the call, since there is nobody else to ask.
Kernel opaque_reference(const Op& op, const Kernel& kernel, bool batch_invariant);

}  // namespace weft
