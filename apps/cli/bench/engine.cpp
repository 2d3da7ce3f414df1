#include "apps/cli/bench/engine.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <ostream>

#include <fmt/format.h>

#include "apps/cli/bench/numbers.h"
#include "apps/cli/result_file.h"
#include "base/error.h"
#include "base/files.h"

namespace weft {
namespace {

constexpr std::int64_t kMostCount = 1'000'000;

double wall_seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::unique_ptr<Engine> open_engine_to_measure(const ModelArgument& model, const std::string& threads, VerbCall& call) {
  if (!threads.empty()) set_option(call.options, "threads", threads, "command line");
  auto engine = open_engine(model.request(call), notes_to(call), &call.watch);
  print_emulated(engine->context(), call.err);
  return engine;
}

BenchVocabulary vocabulary_of(Engine& engine) {
  return {.tokenizer = engine.has_tokenizer() ? &engine.tokenizer() : nullptr,
          .size = engine.runner().vocabulary_size()};
}

// Else the context would end the sequence, and fewer tokens would be counted.
void check_fits(const Engine& engine, std::int64_t prompt, std::int64_t output) {
  USER_CHECK(prompt + output <= engine.max_model_len(),
             "[--output-len] a prompt and its output must fit into the context of {} tokens, but have {} and {}",
             engine.max_model_len(), prompt, output);
}

void add_request(Engine& engine, std::vector<int> ids, std::int64_t output_tokens) {
  SamplingParameters parameters{.temperature = 0, .max_tokens = output_tokens};
  parameters.ignore_end = true;
  engine.add(std::move(ids), std::move(parameters));
}

void run_all(Engine& engine) {
  while (!engine.is_idle())
    for (const RequestEvent& event : engine.step())
      if (event.finished == FinishReason::failed) fail_by(event);
}

// The report is printed as JSON, or as text.
template <class Arguments>
void report(const Arguments& arguments, const std::string& text, const Json& json, VerbCall& call) {
  call.out << (arguments.is_json ? json_text(json, 4) + "\n" : text);
  if (!arguments.output.empty()) write_then_rename(arguments.output, json_text(json, 4) + "\n");
}

}  // namespace

int bench_throughput(const ThroughputArguments& arguments, VerbCall& call) {
  in_range(arguments.choices, 1, kMostCount, "--n");
  in_range(arguments.warm_ups, 0, kMostCount, "--num-warmups");
  if (!arguments.output.empty()) check_can_write(arguments.output, "--output-json");
  arguments.vllm.report(arguments.model.name, log_to(call));
  const auto engine = open_engine_to_measure(arguments.model, arguments.threads, call);
  arguments.vllm.check_quantization(engine->runner().checkpoint(), engine->runner().facts().config, log_to(call));
  const std::vector<BenchRequest> requests = bench_requests(arguments.dataset, vocabulary_of(*engine));
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  for (const BenchRequest& request : requests) {
    check_fits(*engine, std::ssize(request.ids), request.output_tokens);
    prompt_tokens += std::ssize(request.ids);
    output_tokens += request.output_tokens * arguments.choices;
  }
  // There is no other output until the end, which may take minutes.
  log_to(call)(fmt::format("[bench throughput] {} requests: {} tokens of prompts, {} tokens to generate",
                           requests.size(), prompt_tokens, output_tokens));
  const auto run_first = [&](std::size_t count) {
    for (std::size_t i = 0; i < std::min(count, requests.size()); ++i)
      for (std::int64_t choice = 0; choice < arguments.choices; ++choice)
        add_request(*engine, requests[i].ids, requests[i].output_tokens);
    run_all(*engine);
  };
  if (arguments.warm_ups > 0) run_first(static_cast<std::size_t>(arguments.warm_ups));
  const double seconds = wall_seconds([&] { run_first(requests.size()); });
  const auto count = static_cast<double>(requests.size());
  const auto total = static_cast<double>(prompt_tokens + output_tokens);
  const std::string text = fmt::format(
      "Throughput: {:.2f} requests/s, {:.2f} total tokens/s, {:.2f} output tokens/s\nTotal num prompt tokens:  {}\n"
      "Total num output tokens:  {}\n",
      count / seconds, total / seconds, static_cast<double>(output_tokens) / seconds, prompt_tokens, output_tokens);
  report(arguments, text,
         {{"model_id", arguments.model.name},
          {"elapsed_time", seconds},
          {"num_requests", requests.size()},
          {"total_num_tokens", prompt_tokens + output_tokens},
          {"requests_per_second", count / seconds},
          {"tokens_per_second", total / seconds}},
         call);
  return 0;
}

int bench_latency(const LatencyArguments& arguments, VerbCall& call) {
  in_range(arguments.input_len, 1, kMostCount, "--input-len");
  in_range(arguments.output_len, 1, kMostCount, "--output-len");
  in_range(arguments.batch_size, 1, kMostCount, "--batch-size");
  in_range(arguments.choices, 1, kMostCount, "--n");
  in_range(arguments.warm_ups, 0, kMostCount, "--num-iters-warmup");
  in_range(arguments.iterations, 1, kMostCount, "--num-iters");
  if (!arguments.output.empty()) check_can_write(arguments.output, "--output-json");
  arguments.vllm.report(arguments.model.name, log_to(call));
  // Else the sequences of a prompt would share what is to be measured, and so would the iterations. vLLM's benchmark
  // switches it off, too.
  if (!call.options.requested.contains("enable-prefix-caching"))
    set_option(call.options, "enable-prefix-caching", "false", "bench latency");
  const auto engine = open_engine_to_measure(arguments.model, arguments.threads, call);
  arguments.vllm.check_quantization(engine->runner().checkpoint(), engine->runner().facts().config, log_to(call));
  check_fits(*engine, arguments.input_len, arguments.output_len);
  std::mt19937_64 random(arguments.seed);
  std::vector<std::vector<int>> prompts;
  for (std::int64_t prompt = 0; prompt < arguments.batch_size; ++prompt)
    prompts.push_back(random_ids(arguments.input_len, vocabulary_of(*engine), random));
  std::vector<double> latencies;
  for (std::int64_t i = -arguments.warm_ups; i < arguments.iterations; ++i) {
    const double seconds = wall_seconds([&] {
      for (const std::vector<int>& prompt : prompts)
        for (std::int64_t choice = 0; choice < arguments.choices; ++choice)
          add_request(*engine, prompt, arguments.output_len);
      run_all(*engine);
    });
    if (i >= 0) latencies.push_back(seconds);
  }
  Json percentiles = Json::object();
  std::string text = fmt::format("Avg latency: {} seconds\n", mean(latencies));
  for (const int percent : kLatencyPercents) {
    const double value = percentile(latencies, percent);
    percentiles[std::to_string(percent)] = value;
    text += fmt::format("{}% percentile latency: {} seconds\n", percent, value);
  }
  report(arguments, text,
         {{"model_id", arguments.model.name},
          {"avg_latency", mean(latencies)},
          {"latencies", latencies},
          {"percentiles", percentiles}},
         call);
  return 0;
}

void ThroughputArguments::declare(Flags& flags) {
  model.declare_to_run(flags);
  dataset.declare(flags);
  flags.option("--n", choices, "Sequences of each prompt.", {.shows_default = true});
  flags.option("--num-warmups", warm_ups, "Requests of the dataset that run before those that count.",
               {.shows_default = true});
  vllm.declare(flags);
  flags.option("--output-json", output, "Write the results to this file.");
  flags.flag("--json", is_json, "Print the results as JSON.");
  flags.option("-t,--threads", threads, "Threads that compute.");
}

void LatencyArguments::declare(Flags& flags) {
  model.declare_to_run(flags);
  flags.option("--input-len", input_len, "Tokens of each prompt.", {.shows_default = true});
  flags.option("--output-len", output_len, "Tokens to generate after each.", {.shows_default = true});
  flags.option("--batch-size", batch_size, "Prompts that run together.", {.shows_default = true});
  flags.option("--n", choices, "Sequences of each prompt.", {.shows_default = true});
  flags.option("--num-iters-warmup", warm_ups, "Iterations before those that count.", {.shows_default = true});
  flags.option("--num-iters", iterations, "Iterations that count.", {.shows_default = true});
  flags.option("--seed", seed, "Seed of the prompts.", {.shows_default = true});
  vllm.declare(flags);
  flags.option("--output-json", output, "Write the results to this file.");
  flags.flag("--json", is_json, "Print the results as JSON.");
  flags.option("-t,--threads", threads, "Threads that compute.");
}

}  // namespace weft
