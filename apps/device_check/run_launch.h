#pragma once

// Runs a recorded launch on the checked device.

#include <optional>
#include <string>

#include "apps/device_check/difference.h"
#include "apps/device_check/launch_file.h"
#include "apps/device_check/target.h"
#include "kernels/cuda/lib/mathematics.h"

namespace weft::device_check {

// Selects whose exp, reciprocal and order of sums a kernel uses.
using cuda::Mathematics;

// Returns the name of the kernel as it was recorded, with the reference math, or of its variant with the device's own
// math. Kernels that use neither have one name.
std::string kernel_name(const RecordedLaunch& launch, Mathematics mathematics);

// Runs the launch in separate memory. Returns the difference from the record, or a write to memory that must not be
// written; "" if there is none. Returns nothing if the code does not have the kernel. Throws CudaError if the device
// fails.
std::optional<std::string> run_launch(Target& target, const RecordedLaunch& launch, Mathematics mathematics);

}  // namespace weft::device_check
