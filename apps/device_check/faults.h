#pragma once

// Checks bad input and failures of a device. Each must be an error that names the expected and the actual value.

#include <string>
#include <vector>

#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

// After each of these faults the device must still compute.
std::vector<CheckedCase> check_faults(Target& target);

// Checks a kernel that fails, launched directly or in a captured graph. Afterwards, either the device can be reset and
// computes again, or it reports that the process must be restarted. In the second case the target is unusable. If the
// target is already unusable, the case is not run.
enum class KernelFault : std::uint8_t { launched, captured };
CheckedCase check_kernel_fault(Target& target, KernelFault fault);

}  // namespace weft::device_check
