#pragma once

// All checks of a device, one after the other.

#include <span>

#include "apps/device_check/launch_file.h"
#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

// `launches_problem`: why there are no recorded launches, if there are none. Times of kernels are measured on a GPU
// alone.
Report check_device(Target& target, std::span<const RecordedLaunch> launches, const std::string& launches_problem);

}  // namespace weft::device_check
