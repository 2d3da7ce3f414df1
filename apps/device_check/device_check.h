#pragma once

// All checks of a device, one after the other.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/device_check/launch_file.h"
#include "apps/device_check/report.h"
#include "apps/device_check/target.h"

namespace weft::device_check {

// The parts of the check, in their order. After one of the last two a driver refuses the device to the process.
inline constexpr std::string_view kParts[] = {"launches", "designs",      "once",       "timings",
                                              "faults",   "kernel_fault", "graph_fault"};

// What is checked: everything by default. Tools that slow each launch down or change what a fault does
// (compute-sanitizer, ncu) want little of it.
struct Selection {
  std::vector<std::string> parts = {};  // of kParts; empty for all
  std::string name = {};                // launches whose kernel contains this, timings whose label (timing_label) does
  bool one_each = false;                // of each kernel its first recorded launch

  bool wants(std::string_view part) const;
};

// `launches_problem`: why there are no recorded launches, if there are none. Times of kernels are measured on a GPU
// alone.
Report check_device(Target& target, std::span<const RecordedLaunch> launches, const std::string& launches_problem,
                    const Selection& selection = {});

}  // namespace weft::device_check
