#pragma once

// The calls of the linear family with the instruction set as an argument. Prepared kernels run them, and tests run them
// with vectors of their own.

#include "kernels/cpu/lib/linear_variant.h"
#include "kernels/kernel.h"

namespace weft::cpu {

void run_linear_int8(const LinearInt8Variant& variant, const KernelCall& call);
void run_linear(const LinearVariant& variant, const KernelCall& call);

}  // namespace weft::cpu
