#pragma once

// Where the time from a process's start to ready goes.

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/stopwatch.h"
#include "compiler/pipeline.h"

namespace weft {

struct StartTimes {
  using Parts = std::vector<std::pair<std::string, double>>;  // milliseconds

  // Without gaps, in order: each is what happened between the end of the one before and its own.
  Parts phases = {};
  // Milliseconds from the start to the end of the last phase, read off the clock and not summed.
  double total = 0;
  // What the phase `compile` is made of, over all graphs and ranges; `rest` is what nobody else accounts for.
  Parts compile = {};
};

// At ready; the watch began with the process. Ends the phase `report`, which gathers what is told of the start: nothing
// up to here lies behind the last phase.
StartTimes start_times(Stopwatch& watch, const std::vector<CompileRecord>& records);

// {phase: ms, ..., "total": ms}, and {part: ms, ...}.
Json timing_json(const StartTimes& times);
Json compile_json(const StartTimes& times);

}  // namespace weft
