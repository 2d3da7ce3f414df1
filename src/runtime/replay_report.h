#pragma once

// Statistics of one model's replays: captures, runs, and first-time work.

#include <array>
#include <string>
#include <vector>

#include "options/options.h"
#include "runtime/replay.h"

namespace weft {

struct ReplayReport {
  ReplayMode mode = ReplayMode::none;  // the mode in effect
  Counts sizes = {};                   // token counts with a capture; counts between them use the next larger one
  bool is_lazy = false;                // captures are made at the first run
  struct Capture {
    std::string plan;
    ReplayMode mode = ReplayMode::none;  // simple
    std::size_t stretches = 0;           // of steps, each captured as one
    std::size_t captured_steps = 0;
    std::size_t other_steps = 0;   // steps that are resolved when they run
    std::vector<SizeGraph> sizes;  // on a device: the captures of single sizes
  };
  std::vector<Capture> captures = {};
  double launch_graph_milliseconds = 0;
  std::int64_t runs = 0;                       // of Plans
  std::int64_t look_ups = 0, allocations = 0;  // ReplayCounts'
  std::int64_t padded_rows = 0;                // rows that padded steps to captured sizes
  // Adds the captures and counts of one Plan's Replay.
  void add(const Replay& replay);
  std::array<FirstTimeWork::Counts, kFirstTimeKinds> first_time = {};  // by FirstTime
};

}  // namespace weft
