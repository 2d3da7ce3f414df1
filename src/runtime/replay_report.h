#pragma once

// What is known of the replays of one model: what was captured, and what was done for the first time.

#include <array>
#include <string>
#include <vector>

#include "base/options.h"
#include "runtime/replay.h"

namespace weft {

struct ReplayReport {
  ReplayMode mode = ReplayMode::none;  // in effect
  Counts sizes = {};                   // token counts that have a capture; smaller ones between them run with it
  bool is_lazy = false;                // captured when it first runs
  struct Capture {
    std::string plan;
    ReplayMode mode = ReplayMode::none;  // simple
    std::size_t stretches = 0;           // of steps, each captured as one
    std::size_t captured_steps = 0;
    std::size_t other_steps = 0;     // resolved when they run
    std::vector<SizeCapture> sizes;  // on a device, that were captured apart
  };
  std::vector<Capture> captures = {};
  double capture_milliseconds = 0;
  std::int64_t runs = 0;                       // of Plans, so far
  std::int64_t look_ups = 0, allocations = 0;  // ReplayCounts'
  std::int64_t padded_rows = 0;                // that steps were given up to the sizes they were captured for, so far
  // Adds what one Plan's Replay captured and counted.
  void add(const Replay& replay);
  std::array<FirstTimeWork::Counts, kFirstTimeKinds> first_time = {};  // by FirstTime
};

}  // namespace weft
