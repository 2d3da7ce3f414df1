#include <algorithm>
#include <chrono>

#include "apps/cli/bench/engine.h"
#include "apps/cli/bench/functions_verb.h"
#include "apps/cli/bench/fusions_report.h"
#include "apps/cli/bench/model.h"
#include "apps/cli/bench/ops.h"
#include "apps/cli/bench/ops_report.h"
#include "apps/cli/bench/serve.h"
#include "apps/cli/bench/share.h"
#include "apps/cli/bench/startup.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/text.h"
#include "builtin/models.h"

namespace weft {
namespace {

struct BenchArguments {
  ModelArgument model;
  std::string prompts = "512";
  std::string generated = "128";
  std::vector<std::string> pairs;
  std::string depths = "0";
  std::string parallel = "1";
  std::string threads;  // "" for the option's own value
  std::int64_t repetitions = 5;
  std::string format = "md";
  bool json = false;
  bool no_warm_up = false;
  bool breakdown = false;
};

struct OpsArguments {
  std::vector<std::string> ops;
  std::vector<std::string> providers;
  std::string rows = "1,512";
  std::string columns = "576,4096,14336";
  std::int64_t group = 0;
  std::string threads;  // "" for the option's own value
  std::int64_t rounds = 5;
  std::string format = "md";
  bool json = false;
  bool fusions = false;
};

std::vector<std::int64_t> counts(const std::string& text, const char* option) {
  std::vector<std::int64_t> counts;
  for (const std::string& word : split_text(text, ',')) {
    counts.push_back(human_integer(word, option));
    USER_CHECK(counts.back() >= 0, "[{}] must be at least 0, but is {}", option, counts.back());
  }
  return counts;
}

std::vector<std::int64_t> thread_counts(const BenchArguments& arguments, const Options& options) {
  if (arguments.threads.empty()) return {options.threads};
  std::vector<std::int64_t> counts;
  for (const std::string& word : split_text(arguments.threads, ',')) {
    Options one;  // the option's own reading and bounds
    set_option(one, "threads", word, "command line");
    counts.push_back(one.threads);
  }
  return counts;
}

// Of each depth and number of sequences: prompts, generations, then both in a row.
void add_tests(const BenchArguments& arguments, std::int64_t depth, std::int64_t sequences,
               std::vector<BenchTest>& tests) {
  const auto add = [&](std::int64_t prompt, std::int64_t generated) {
    if (prompt > 0 || generated > 0)
      tests.push_back({.prompt = prompt, .generated = generated, .depth = depth, .sequences = sequences});
  };
  for (std::int64_t prompt : counts(arguments.prompts, "-p")) add(prompt, 0);
  for (std::int64_t generated : counts(arguments.generated, "-n")) add(0, generated);
  for (const std::string& pair : arguments.pairs) {
    const std::vector<std::int64_t> both = counts(pair, "-pg");
    USER_CHECK(both.size() == 2 && (both[0] > 0 || both[1] > 0), "[-pg] must be two counts as in 512,128, but is {}",
               quote(pair));
    add(both[0], both[1]);
  }
}

std::vector<BenchTest> bench_tests(const BenchArguments& arguments) {
  std::vector<BenchTest> tests;
  const std::vector<std::int64_t> parallel = counts(arguments.parallel, "-npl");
  for (std::int64_t depth : counts(arguments.depths, "-d"))
    for (std::int64_t sequences : parallel) {
      USER_CHECK(sequences >= 1, "[-npl] must be at least 1, but is {}", sequences);
      add_tests(arguments, depth, sequences, tests);
    }
  USER_CHECK(!tests.empty(), "[bench model] there is nothing to measure: -p, -n and -pg are all 0");
  return tests;
}

int bench_model(const BenchArguments& arguments, VerbCall& call) {
  const std::vector<BenchTest> tests = bench_tests(arguments);
  const BenchFormat format = bench_format(arguments.format, arguments.json);
  USER_CHECK(arguments.repetitions >= 1 && arguments.repetitions <= 1'000'000,
             "[-r] must be in [1, 1000000], but is {}", arguments.repetitions);
  const std::vector<std::int64_t> threads = thread_counts(arguments, call.options);
  BenchReport report(format, call.out);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    call.options.threads = threads[i];
    const auto [context, checkpoint, differences] = open_model(arguments.model.request(call), notes_to(call));
    ModelRunner runner(context, checkpoint, make_model_registry());
    if (i == 0) print_notes(runner.notes(), call.err);
    if (i == 0) print_emulated(*context, call.err);
    BenchModel model = describe_model(runner, *context);
    for (const BenchTest& test : tests) check_bench_test(runner, test);
    model.peaks = peak_rates(*context);
    std::vector<LeastTime> least;
    for (const BenchTest& test : tests) least.push_back(least_time(runner.model(), test, model.peaks));
    USER_CHECK(!arguments.breakdown || runner.forward_plan() != nullptr,
               "[--breakdown] nothing is compiled into Plans with these options");
    if (i == 0) report.begin();
    runner.set_ready();
    for (std::size_t k = 0; k < tests.size(); ++k) {
      BenchSamples samples = run_bench_test(runner, tests[k], arguments.repetitions, !arguments.no_warm_up,
                                            arguments.breakdown ? context->threads.get() : nullptr);
      samples.least = least[k];
      report.row(model, samples);
    }
  }
  report.end();
  return 0;
}

constexpr std::int64_t kMostSize = 65536;

std::vector<std::int64_t> sizes(const std::string& text, const char* option) {
  const std::vector<std::int64_t> sizes = counts(text, option);
  for (const std::int64_t size : sizes)
    USER_CHECK(size >= 1 && size <= kMostSize, "[{}] must be in [1, {}], but is {}", option, kMostSize, size);
  return sizes;
}

std::int64_t rounds(const OpsArguments& arguments) {
  USER_CHECK(arguments.rounds >= 1 && arguments.rounds <= 1'000'000, "[-r] must be in [1, 1000000], but is {}",
             arguments.rounds);
  return arguments.rounds;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int bench_fusions(const OpsArguments& arguments, VerbCall& call) {
  USER_CHECK(arguments.providers.empty(),
             "[--provider] does not go with --fusions: the priority lists decide who computes");
  FusionBenchOptions options{.ops = arguments.ops};
  options.rows = sizes(arguments.rows, "--rows");
  options.columns = sizes(arguments.columns, "--columns");
  USER_CHECK(arguments.group >= 0 && arguments.group <= kMostSize, "[--group] must be in [0, {}], but is {}", kMostSize,
             arguments.group);
  options.group = arguments.group;
  options.rounds = rounds(arguments);
  options.clock = seconds_now;
  const BenchFormat format = bench_format(arguments.format, arguments.json);
  if (!arguments.threads.empty()) set_option(call.options, "threads", arguments.threads, "command line");
  const auto context = open_context(call);
  check_host_is_measured(*context, "bench ops");
  check_fusion_bench(*context, options);
  FusionBenchReport report(format, *context, call.out);
  bench_fusions(*context, options, [&](const FusionBenchRow& row) { report.row(row); });
  report.end();
  return 0;
}

OpBenchOptions op_bench_options(const OpsArguments& arguments) {
  OpBenchOptions options{.ops = arguments.ops, .providers = arguments.providers};
  options.rows = sizes(arguments.rows, "--rows");
  options.rounds = rounds(arguments);
  options.clock = seconds_now;
  return options;
}

int bench_ops(const OpsArguments& arguments, VerbCall& call) {
  if (arguments.fusions) return bench_fusions(arguments, call);
  const OpBenchOptions options = op_bench_options(arguments);
  const BenchFormat format = bench_format(arguments.format, arguments.json);
  if (!arguments.threads.empty()) set_option(call.options, "threads", arguments.threads, "command line");
  const auto context = open_context(call);
  check_host_is_measured(*context, "bench ops");
  check_op_bench(*context, options);
  const MeasuredPeaks peaks = measure_peaks(*context->threads, context->device.features, options.clock);
  OpBenchReport report(format, *context, peaks, call.out);
  bench_ops(
      *context, options, [&](const OpBenchRow& row) { report.row(row); },
      [&](const OpBenchRefusal& refusal) { report.refusal(refusal); });
  report.end();
  return 0;
}

void declare_ops(Flags& ops, OpsArguments& arguments) {
  ops.option("--op", arguments.ops, "Only this op; may be repeated.");
  ops.option("--provider", arguments.providers, "Only this provider; may be repeated.");
  ops.option("--rows", arguments.rows, "Row counts of the calls.", {.shows_default = true});
  ops.flag("--fusions", arguments.fusions, "Fused ops against what they are made of, and against a copy.");
  ops.option("--columns", arguments.columns, "Columns of the results of --fusions.", {.shows_default = true});
  ops.option("--group", arguments.group, "Group size of --fusions where ops have one; 0: that of the op's sample.",
             {.shows_default = true});
  ops.option("-t,--threads", arguments.threads, "Threads that compute.");
  ops.option("-r,--repetitions", arguments.rounds, "How often.", {.shows_default = true});
  ops.option("-o,--output", arguments.format, "md, csv, json or jsonl.", {.shows_default = true});
  ops.flag("--json", arguments.json, "The same as -o json.");
}

}  // namespace
}  // namespace weft

VERB(bench) {
  verbs.add(
      "bench",
      {.summary = "Measure: bench model, ops, functions, startup, serve, latency, throughput.",
       .setup = [](Flags& flags, VerbCall& call) -> VerbBody {
         auto arguments = std::make_shared<BenchArguments>();
         auto of_ops = std::make_shared<OpsArguments>();
         auto of_functions = std::make_shared<FunctionArguments>();
         auto of_startup = std::make_shared<StartupArguments>();
         auto of_serve = std::make_shared<BenchServeArguments>();
         auto of_latency = std::make_shared<LatencyArguments>();
         auto of_throughput = std::make_shared<ThroughputArguments>();
         auto run = std::make_shared<VerbBody>([arguments, &call] { return bench_model(*arguments, call); });
         declare_ops(flags.verb("ops", "Speed of every op's kernels against what the machine can do.",
                                [=, &call] { *run = [=, &call] { return bench_ops(*of_ops, call); }; }),
                     *of_ops);
         Flags& model = flags.verb("model", "Speed of the forward pass, as llama-bench measures it.");
         arguments->model.declare_to_run(model);
         model.option("-p,--n-prompt", arguments->prompts, "Prompt lengths.", {.shows_default = true});
         model.option("-n,--n-gen", arguments->generated, "Counts of generated tokens.", {.shows_default = true});
         model.option("--pg", arguments->pairs, "Prompt and generation in a row: -pg 512,128.");
         model.option("-d,--n-depth", arguments->depths, "Tokens in the cache before.", {.shows_default = true});
         model.option("--npl", arguments->parallel, "Sequences that run together: -npl 1,8.", {.shows_default = true});
         model.option("-t,--threads", arguments->threads, "Threads that compute; several counts as in 1,2.");
         model.option("-r,--repetitions", arguments->repetitions, "How often.", {.shows_default = true});
         model.option("-o,--output", arguments->format, "md, csv, json or jsonl.", {.shows_default = true});
         model.flag("--json", arguments->json, "The same as -o json.");
         model.flag("--breakdown", arguments->breakdown, "Measure also where a step's time goes.");
         model.flag("--no-warmup", arguments->no_warm_up, "Measure the first run, too.");
         of_functions->declare(
             flags.verb("functions", "Speed of generated functions against a copy of the bytes they move.",
                        [=, &call] { *run = [=, &call] { return bench_functions(*of_functions, call); }; }));
         of_startup->declare(
             flags.verb("startup", "Time from the start of a process until it could compute, with and without a cache.",
                        [=, &call] { *run = [=, &call] { return bench_startup(*of_startup, call); }; }));
         of_serve->declare(flags.verb("serve", "Latencies and rates of a server, this one or another.",
                                      [=, &call] { *run = [=, &call] { return bench_serve(*of_serve, call); }; }));
         of_latency->declare(flags.verb("latency", "Time of one batch of requests, in the engine alone.", [=, &call] {
           *run = [=, &call] { return bench_latency(*of_latency, call); };
         }));
         of_throughput->declare(
             flags.verb("throughput", "Tokens per second of many requests, in the engine alone.",
                        [=, &call] { *run = [=, &call] { return bench_throughput(*of_throughput, call); }; }));
         return [run] { return (*run)(); };
       }});
}
