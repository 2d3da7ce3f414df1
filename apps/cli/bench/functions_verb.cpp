#include "apps/cli/bench/functions_verb.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "apps/cli/bench/functions_report.h"
#include "apps/cli/graph_commands.h"
#include "apps/cli/measured_peaks.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "builtin/models.h"

namespace weft {
namespace {

// A pass over as much as a cache holds still finds a part of it there.
constexpr double kBeyondCache = 1.5;
constexpr std::int64_t kLeastBytes = 128 << 20, kMostBytes = std::int64_t{1} << 36;

double function_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t moved_bytes(const std::string& text) {
  const std::int64_t bytes = human_integer(text, "--bytes");
  USER_CHECK(bytes >= 0 && bytes <= kMostBytes, "[--bytes] must be in [0, {}], but is {}", kMostBytes, bytes);
  if (bytes > 0) return bytes;
  return std::max(kLeastBytes, static_cast<std::int64_t>(kBeyondCache * static_cast<double>(shared_cache_bytes())));
}

// Measures every function once, of whatever Plan it comes first.
class FunctionsBench {
 public:
  FunctionsBench(const FunctionArguments& arguments, const FunctionBenchOptions& options,
                 std::shared_ptr<Context> context, FunctionBenchReport& report)
      : arguments_(arguments), options_(options), context_(std::move(context)), report_(report) {}

  void of_model(VerbCall& call) {
    const ModelCompilation model(context_, arguments_.model.open(call), make_model_registry());
    for (const ModelGraph* of_model : model.graphs()) {
      const auto graph = of_model->traced->clone();
      const std::shared_ptr<const Plan> plan = compile_graph(*graph, *context_);
      USER_CHECK(plan != nullptr, "[bench functions] there is no Plan with these options");
      of_plan(graph->name, *plan);
    }
  }

  void of_ops() {
    for (const auto& [name, op] : context_->ops.all())
      if (!op.is_primitive()) context_->priorities.set(name, {"native"});
    for (const auto& [name, op] : context_->ops.all()) {
      if (!arguments_.ops.empty() && std::count(arguments_.ops.begin(), arguments_.ops.end(), name) == 0) continue;
      for (const DType dtype : {DType::f32, DType::bf16}) of_op(op, dtype);
    }
  }

 private:
  void of_op(const Op& op, DType dtype) {
    const std::string source = fmt::format("{} {}", op.name, dtype_text(dtype));
    try {
      const std::shared_ptr<const Plan> plan = native_plan(*context_, op, dtype, arguments_.columns);
      if (plan == nullptr) return;
      if (generated_steps(*plan).empty()) return report_.refusal(source, "no function computes any of it");
      of_plan(source, *plan);
    } catch (const UserError& error) {  // a sample whose shapes do not take these columns
      report_.refusal(source, error.what());
    }
  }

  void of_plan(const std::string& source, const Plan& plan) {
    for (const PlanStep* step : generated_steps(plan)) {
      if (!known_.insert(step->op).second) continue;
      const auto row = bench_function(*context_, plan, *step, options_);
      if (!row) {
        report_.refusal(source, fmt::format("{} has no rows", step->op));
        continue;
      }
      report_.row(source, *row);
      if (!arguments_.objects.empty())
        write_then_rename(fmt::format("{}/{}.o", arguments_.objects, step->op),
                          context_->generated->object(step->op).code);
    }
  }

  const FunctionArguments& arguments_;
  const FunctionBenchOptions& options_;
  std::shared_ptr<Context> context_;
  FunctionBenchReport& report_;
  std::set<std::string> known_;
};

}  // namespace

void FunctionArguments::declare(Flags& flags) {
  model.declare(flags, ModelArgument::optional);
  flags.option("--op", ops, "Without a model: only this op; may be repeated.");
  flags.option("--columns", columns, "Without a model: columns of the ops' results.", {.shows_default = true});
  flags.option("--bytes", bytes, "What a call moves at least; 0: 1.5 times the size of the shared cache.",
               {.shows_default = true});
  flags.option("--objects", objects, "A folder that gets the functions' object files.");
  flags.option("-t,--threads", threads, "Threads that compute.");
  flags.option("-r,--repetitions", rounds, "How often.", {.shows_default = true});
  flags.option("-o,--output", format, "md, csv, json or jsonl.", {.shows_default = true});
  flags.flag("--json", json, "The same as -o json.");
}

int bench_functions(const FunctionArguments& arguments, VerbCall& call) {
  USER_CHECK(arguments.rounds >= 1 && arguments.rounds <= 10'000, "[-r] must be in [1, 10000], but is {}",
             arguments.rounds);
  USER_CHECK(arguments.columns >= 1 && arguments.columns <= 65536, "[--columns] must be in [1, 65536], but is {}",
             arguments.columns);
  const FunctionBenchOptions options{
      .bytes = moved_bytes(arguments.bytes), .rounds = arguments.rounds, .clock = function_clock};
  const BenchFormat format = bench_format(arguments.format, arguments.json);
  if (!arguments.threads.empty()) set_option(call.options, "threads", arguments.threads, "command line");
  const auto context = open_context(call);
  check_host_is_measured(*context, "bench functions");
  for (const std::string& op : arguments.ops) context->ops.at(op);
  if (!arguments.objects.empty()) make_folders(arguments.objects);
  FunctionBenchReport report(format, *context, measure_clock_rate(options.clock), options.bytes, call.out);
  FunctionsBench bench(arguments, options, context, report);
  if (arguments.model.name.empty()) {
    bench.of_ops();
  } else {
    bench.of_model(call);
  }
  report.end();
  return 0;
}

}  // namespace weft
