#pragma once

// Both designs of silu_and_mul_per_block_quant on one input, with house mathematics: they have the same bits. On a GPU
// at sizes that no emulator reaches, beyond 65,535 groups and 2^31 elements.

#include <vector>

#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

std::vector<CheckedCase> check_designs(Target& target);

}  // namespace weft::device_check
