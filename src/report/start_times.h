#pragma once

// The time from the start of a process until it is ready, by phase.

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/stopwatch.h"
#include "compiler/pipeline.h"

namespace weft {

struct StartTimes {
  using Parts = std::vector<std::pair<std::string, double>>;  // milliseconds

  // In order and without gaps: each phase lasts from the end of the phase before it to its own end.
  Parts phases = {};
  // Milliseconds from the start to the end of the last phase. It is read from the clock, not summed.
  double total = 0;
  // The parts of the phase `compile`, over all graphs and ranges. `rest` is the time of that phase that no other part
  // includes.
  Parts compile = {};
};

// Call it when the process is ready; the watch started with the process. It ends the phase `report`, which gathers the
// report of the start, so the phases include all time up to this call.
StartTimes start_times(Stopwatch& watch, const std::vector<CompileRecord>& records);

// {phase: ms, ..., "total": ms}, and {part: ms, ...}.
Json timing_json(const StartTimes& times);
Json compile_json(const StartTimes& times);

}  // namespace weft
