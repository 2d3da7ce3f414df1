#pragma once

// How long kernels take on a GPU, each in a graph of several launches that take turns in buffers larger than the
// device's caches; medians of several graphs. The copy rate is measured in the same run.

#include <functional>

#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

// What would be measured, with no number: of a device that has no clock.
std::vector<Timing> planned_timings();

// Fills in the copy rate and the timings.
void measure(Target& target, Report& report);

}  // namespace weft::device_check
