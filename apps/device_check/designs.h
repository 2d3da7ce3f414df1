#pragma once

// Checks both designs of silu_and_mul_per_block_quant on the same input with the reference math: their bits must be
// equal. On a GPU the sizes are too large for the emulator: more than 65,535 groups and 2^31 elements.

#include <vector>

#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

std::vector<CheckedCase> check_designs(Target& target);

}  // namespace weft::device_check
