#pragma once

// Runs all checks of a device in sequence.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/device_check/launch_file.h"
#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

// The parts of the check, in order. After each of the last two a driver may refuse the device to the process.
inline constexpr std::string_view kParts[] = {"launches", "designs",      "once",       "timings",
                                              "faults",   "kernel_fault", "graph_fault"};

// Selects what is checked; the default is everything. Tools that slow each launch down or change the effect of a fault
// (compute-sanitizer, ncu) need a small selection.
struct Selection {
  std::vector<std::string> parts = {};  // from kParts; empty: all parts
  std::string name = {};  // only launches whose kernel, and timings whose label (timing_label), contains this
  bool one_each = false;  // only the first recorded launch of each kernel

  bool wants(std::string_view part) const;
};

// `launches_problem` is the reason if there are no recorded launches. Only a GPU's kernels are timed.
Report check_device(Target& target, std::span<const RecordedLaunch> launches, const std::string& launches_problem,
                    const Selection& selection = {});

}  // namespace weft::device_check
