#pragma once

// How long kernels take on a GPU, each in a graph of several launches that take turns in buffers larger than the
// device's caches; medians of several graphs. The copy rate is measured in the same run.

#include <string>
#include <vector>

#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

// What would be measured, with no number: of a device that has no clock.
std::vector<Timing> planned_timings();

// Each of the launches once, at a small size: on a fake device in the emulator, which finds what it must not do.
std::vector<CheckedCase> check_timed_launches(Target& target);

// Fills in the copy rate, and the timings whose label contains `name`.
void measure(Target& target, const std::string& name, Report& report);

}  // namespace weft::device_check
