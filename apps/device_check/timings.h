#pragma once

// Times kernels on a GPU. Each runs in a graph of several launches that cycle through buffers larger than the device's
// caches; the result is the median of several graphs. The copy rate is measured in the same run.

#include <string>
#include <vector>

#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

// Returns the timings without numbers, for a device that has no clock.
std::vector<Timing> planned_timings();

// Runs each of the launches once, at a small size. On a fake device the emulator then detects invalid operations.
std::vector<CheckedCase> check_timed_launches(Target& target);

// Measures the copy rate and the timings whose label contains `name`.
void measure(Target& target, const std::string& name, Report& report);

}  // namespace weft::device_check
