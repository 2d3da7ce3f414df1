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
  // Milliseconds from the start, read off the clock and not summed.
  double total = 0;
  // What the phase `compile` is made of, over all graphs and ranges; `rest` is what nobody else accounts for.
  Parts compile = {};
};

// At ready; the watch began with the process.
StartTimes start_times(const Stopwatch& watch, const std::vector<CompileRecord>& records);

// {phase: ms, ..., "total": ms}, and {part: ms, ...}.
Json timing_json(const StartTimes& times);
Json compile_json(const StartTimes& times);

}  // namespace weft
