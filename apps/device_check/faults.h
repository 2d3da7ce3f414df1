#pragma once

// Bad input, and what goes wrong on a device: each must be an error that names what was wanted and what came, and after
// each the device must still compute.

#include <vector>

#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

// Cases whose kernels fail break the device, which is then reset: nothing that was made on it before is of use.
std::vector<CheckedCase> check_faults(Target& target);

}  // namespace weft::device_check
