#pragma once

// `weft bench startup` measures the time from the start of a process until it can compute, as `vllm bench startup`
// does: cold with an empty cache, and warm with a filled one. Each iteration is a separate process.

#include "apps/cli/session.h"

namespace weft {

struct StartupArguments {
  ModelArgument model;
  std::int64_t cold = 3;
  std::int64_t warm = 3;
  std::int64_t warm_up = 1;
  std::string threads;  // "": the value of the option
  std::string output;   // file for the JSON; "": none is written
  bool json = false;
  bool once = false;  // run as one iteration: become ready, print the phases, exit

  void declare(Flags& flags);
};

// The JSON has vLLM's keys, in seconds: avg_cold_startup_time, cold_startup_times, cold_startup_percentiles, the same
// for compilation, and the same for warm. A kind without iterations has no keys. Additional keys are `model`,
// cold_phases_ms and warm_phases_ms (the mean of each phase). The phase `outside` is the time that the process itself
// cannot measure: its creation, the time before main(), and reporting that it is ready.
int bench_startup(const StartupArguments& arguments, VerbCall& call);

}  // namespace weft
