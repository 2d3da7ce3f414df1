#pragma once

// `weft bench startup`: the time from the start of a process until it could compute, as `vllm bench startup` measures
// it: cold with an empty cache, warm with a filled one, each iteration a process of its own.

#include "apps/cli/session.h"

namespace weft {

struct StartupArguments {
  ModelArgument model;
  std::int64_t cold = 3;
  std::int64_t warm = 3;
  std::int64_t warm_up = 1;
  std::string threads;  // "" for the option's own value
  std::string output;   // a file for the JSON; "" for none
  bool json = false;
  bool once = false;  // be one iteration: become ready, print the phases, end

  void declare(Flags& flags);
};

// The JSON has vLLM's keys, in seconds: avg_cold_startup_time, cold_startup_times, cold_startup_percentiles, the same
// with compilation and with warm; without those of a kind that had no iteration. Besides: `model`, and cold_phases_ms
// and warm_phases_ms, the mean of each phase. Their phase `outside` is what the process itself cannot see: making it,
// what it waited for before main(), and passing on that it is ready.
int bench_startup(const StartupArguments& arguments, VerbCall& call);

}  // namespace weft
