#pragma once

// A recorded launch on the device that is checked.

#include <optional>
#include <string>

#include "apps/device_check/difference.h"
#include "apps/device_check/launch_file.h"
#include "apps/device_check/target.h"
#include "kernels/cuda/lib/mathematics.h"

namespace weft::device_check {

// Whose exp, reciprocal and order of sums.
using cuda::Mathematics;

// Of the kernel as it was recorded, with house mathematics, or of the one with the device's own; kernels without either
// have one name.
std::string kernel_name(const RecordedLaunch& launch, Mathematics mathematics);

// Runs it in memory of its own and says what differs from the record, or what was written where nothing was to be; ""
// for nothing. Nothing at all where the code has no such kernel. CudaError where the device fails.
std::optional<std::string> run_launch(Target& target, const RecordedLaunch& launch, Mathematics mathematics);

}  // namespace weft::device_check
