#pragma once

// Bad input, and what goes wrong on a device: each must be an error that names what was wanted and what came.

#include <string>
#include <vector>

#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

// After each of these the device must still compute.
std::vector<CheckedCase> check_faults(Target& target);

// A kernel that fails, launched or in a captured graph. After it the device must either be reset and compute, or say
// that the process must be started again; such a target is of no more use, and where it is given one the case is not
// run.
enum class KernelFault : std::uint8_t { launched, captured };
CheckedCase check_kernel_fault(Target& target, KernelFault fault);

}  // namespace weft::device_check
