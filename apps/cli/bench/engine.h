#pragma once

// `weft bench throughput` and `weft bench latency`: the engine alone, without a server. The flags, the lines and the
// keys of the JSON are vLLM's. Tokens are the most likely ones, and end tokens do not end a sequence.

#include <string>

#include "apps/cli/bench/requests.h"
#include "apps/cli/session.h"
#include "apps/cli/vllm_flags.h"

namespace weft {

// --json prints what --output-json writes.
struct ThroughputArguments {
  ModelArgument model;
  DatasetArguments dataset;
  std::int64_t choices = 1, warm_ups = 0;
  VllmFlags vllm{VllmCommand::bench_engine};
  bool is_json = false;
  std::string output;   // file for the JSON; "": none is written
  std::string threads;  // "": the value of the option

  void declare(Flags& flags);
};

int bench_throughput(const ThroughputArguments& arguments, VerbCall& call);

struct LatencyArguments {
  ModelArgument model;
  std::int64_t input_len = 32, output_len = 128, batch_size = 8, choices = 1;
  std::int64_t warm_ups = 10, iterations = 30;
  std::uint64_t seed = 0;
  VllmFlags vllm{VllmCommand::bench_engine};
  bool is_json = false;
  std::string output;   // file for the JSON; "": none is written
  std::string threads;  // "": the value of the option

  void declare(Flags& flags);
};

int bench_latency(const LatencyArguments& arguments, VerbCall& call);

}  // namespace weft
