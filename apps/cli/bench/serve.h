#pragma once

// `weft bench serve`: sends requests to a server of OpenAI's API and measures the answers, as `vllm bench serve` does.
// Without a server it starts one in this process.

#include <string>
#include <vector>

#include "apps/cli/bench/requests.h"
#include "apps/cli/session.h"
#include "apps/cli/vllm_flags.h"

namespace weft {

struct BenchServeArguments {
  std::string model, checkpoint, tokenizer, served_name;
  std::string backend = "openai";
  std::string base_url, host, endpoint;
  bool is_insecure = false;
  std::int64_t port = 0;  // 0: not given
  DatasetArguments dataset;
  std::string request_rate = "inf";
  double burstiness = 1;
  std::int64_t max_concurrency = 0;  // 0: no limit
  std::int64_t warm_ups = 0;
  double ready_seconds = 0;
  bool ignores_end = false;
  std::string temperature, top_p, top_k, min_p;  // numbers; "": not sent, and a temperature of 0
  std::string frequency_penalty, presence_penalty, repetition_penalty, logprobs;  // the same
  std::vector<std::string> adapters;                                              // names, or NAME=PATH
  std::string adapter_assignment = "random";
  std::string extra_body;
  std::string id_prefix;  // of X-Request-Id; "": requests have none
  std::vector<std::string> headers, metadata, goodput;
  std::string metrics = "ttft,tpot,itl", percents = "99";
  bool saves = false, is_detailed = false, appends = false, is_json = false;
  std::string folder, file, label;
  std::string threads;  // "": the value of the option
  VllmFlags vllm{VllmCommand::bench_serve};

  void declare(Flags& flags);

 private:
  void declare_server(Flags& flags);
  void declare_requests(Flags& flags);
  void declare_results(Flags& flags);
};

// 1 if a request failed.
int bench_serve(const BenchServeArguments& arguments, VerbCall& call);

}  // namespace weft
