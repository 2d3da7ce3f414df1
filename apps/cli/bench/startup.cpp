#include "apps/cli/bench/startup.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <system_error>

#include <stdlib.h>

#include "apps/cli/bench/numbers.h"
#include "apps/cli/child_process.h"
#include "apps/cli/result_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "builtin/models.h"
#include "report/start_times.h"

namespace weft {
namespace {

constexpr std::int64_t kMostIterations = 10'000;
constexpr std::size_t kLongestPath = 1000;  // of a path in messages

// Where temporary folders are: TMPDIR, else /tmp.
std::string temporary_root() {
  std::error_code error;
  const std::string root = std::filesystem::temp_directory_path(error).string();
  if (error)
    fail_user("[TMPDIR] must be a folder for the caches of the starts, but there is none: {}", error.message());
  return root;
}

// A folder for caches, gone with all in it at the end of the scope.
class CacheFolder {
 public:
  CacheFolder() : path_(temporary_root() + "/weft-startup-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
      fail_user("[TMPDIR] {} cannot be made, which the caches of the starts need: {}", quote(path_, kLongestPath),
                system_error_text());
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// This process's memory in bytes, as the system reports it: resident, the part of it that is mapped files, and the
// peak.
Json memory_json() {
  constexpr std::size_t kMostBytes = 1 << 16;
  const std::string status = read_file("/proc/self/status", kMostBytes);
  Json memory = Json::object();
  for (const auto& [key, name] : {std::pair("VmRSS", "resident"), {"RssFile", "of_files"}, {"VmHWM", "peak"}}) {
    const std::size_t line = status.find(std::string("\n") + key + ":");
    if (line == std::string::npos) continue;  // not every system reports all
    memory[name] = std::stoll(status.substr(status.find(':', line) + 1)) * 1024;
  }
  return memory;
}

// What the iterations of one kind gave.
struct Starts {
  std::vector<double> startup;      // seconds
  std::vector<double> compilation;  // seconds
  bool all_hit = true;              // all found their plans in the cache
  Json most_memory = Json::object();
  StartTimes::Parts phases = {};  // milliseconds, summed
};

int start_once(const StartupArguments& arguments, VerbCall& call) {
  call.watch.lap("options");
  const auto context = open_context(call);
  call.watch.lap("context");
  Checkpoint checkpoint = arguments.model.open(call);
  call.watch.lap("checkpoint");
  Engine engine(context, std::move(checkpoint), make_model_registry(), &call.watch);
  ModelRunner& runner = engine.runner();
  const StartTimes times =
      start_times(call.watch, runner.model().cache_use().hit ? std::vector<CompileRecord>() : runner.records());
  const Json memory = memory_json();
  call.out << json_text(Json{{"timing_ms", timing_json(times)},
                             {"compile_ms", compile_json(times)},
                             {"cache_hit", runner.model().cache_use().hit},
                             {"memory_bytes", memory}})
           << "\n";
  call.out.flush();
  return 0;
}

// The command line of an iteration: the options of this one, but for the cache, which the environment names.
std::vector<std::string> words_of_iteration(const StartupArguments& arguments, const VerbCall& call) {
  std::vector<std::string> words{"bench", "startup", arguments.model.path(call), "--once"};
  for (const auto& [name, requested] : call.options.requested) {
    if (requested.source != "command line" || name == "cache-root") continue;
    words.push_back((name.starts_with("cc.") ? "-" : "--") + name + "=" + requested.text);
  }
  return words;
}

// The last line of what a start wrote to stderr, which is the error's, without the program's name.
std::string error_of(const std::string& stderr_text) {
  std::vector<std::string> lines = split_text(stderr_text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.empty()) return "it gave no reason";
  constexpr std::string_view kName = "weft: ";
  return lines.back().starts_with(kName) ? lines.back().substr(kName.size()) : lines.back();
}

void add_start(Starts& starts, const std::vector<std::string>& words, const std::string& cache_root) {
  const std::string error_path = cache_root + "/stderr";
  const ChildRun run = run_this_program(words, {{"WEFT_CACHE_ROOT", cache_root}}, error_path);
  if (run.status == 2) fail_user("[bench startup] a start was refused: {}", error_of(run.problem));
  CHECK(run.status == 0, "a start ended with status {}: {}", run.status, error_of(run.problem));
  const Json report = parse_json(run.line);
  CHECK(report.is_object() && report.contains("timing_ms"), "a start reported {}", run.line);
  const Json& timing = report["timing_ms"];
  const auto add_phase = [&](const std::string& name, double milliseconds) {
    for (auto& [known, sum] : starts.phases)
      if (known == name) {
        sum += milliseconds;
        return;
      }
    starts.phases.emplace_back(name, milliseconds);
  };
  double inside = 0;
  for (const auto& [name, milliseconds] : timing.items()) {
    if (name == "total") continue;
    add_phase(name, milliseconds.get<double>());
    inside += milliseconds.get<double>();
  }
  add_phase("outside", run.seconds * 1000 - inside);
  for (const auto& [name, bytes] : report["memory_bytes"].items())
    starts.most_memory[name] = std::max(starts.most_memory.value(name, std::int64_t{0}), bytes.get<std::int64_t>());
  starts.all_hit = starts.all_hit && report.value("cache_hit", false);
  starts.startup.push_back(run.seconds);
  starts.compilation.push_back(timing.value("compile", 0.0) / 1000);
}

Json report_json(const std::string& model, const std::vector<std::pair<std::string, Starts>>& kinds) {
  Json report{{"model", model}};
  for (const auto& [kind, starts] : kinds) {
    const auto add = [&](const std::string& what, const std::vector<double>& seconds) {
      Json percentiles = Json::object();
      for (const int percentage : kLatencyPercents)
        percentiles[std::to_string(percentage)] = percentile(seconds, percentage);
      report["avg_" + kind + "_" + what + "_time"] = mean(seconds);
      report[kind + "_" + what + "_times"] = seconds;
      report[kind + "_" + what + "_percentiles"] = percentiles;
    };
    add("startup", starts.startup);
    add("compilation", starts.compilation);
    Json phases = Json::object();
    for (const auto& [name, sum] : starts.phases) phases[name] = sum / static_cast<double>(starts.startup.size());
    report[kind + "_phases_ms"] = phases;
    report[kind + "_memory_bytes"] = starts.most_memory;
  }
  return report;
}

void print_report(const std::vector<std::pair<std::string, Starts>>& kinds, std::ostream& out) {
  for (const auto& [kind, starts] : kinds) {
    const auto line = [&](const char* what, const std::vector<double>& seconds) {
      out << fmt::format("{} {:<12} {:.4f} s on average", kind, what, mean(seconds));
      for (const int percentage : kLatencyPercents)
        out << fmt::format(", {}%: {:.4f}", percentage, percentile(seconds, percentage));
      out << "\n";
    };
    line("startup", starts.startup);
    line("compilation", starts.compilation);
    out << fmt::format("{} {:<12} {:.1f} MB at ready, {:.1f} MB at most\n", kind, "memory",
                       starts.most_memory.value("resident", 0.0) / 1e6, starts.most_memory.value("peak", 0.0) / 1e6);
  }
  out << fmt::format("\n{:<12}", "phase, ms");
  for (const auto& [kind, starts] : kinds) out << fmt::format("{:>10}", kind);
  out << "\n";
  StartTimes::Parts rows = kinds.front().second.phases;
  for (const auto& [name, sum] : kinds.back().second.phases)
    if (std::none_of(rows.begin(), rows.end(), [&name = name](const auto& row) { return row.first == name; }))
      rows.emplace_back(name, 0);
  for (const auto& [name, unused] : rows) {
    out << fmt::format("{:<12}", name);
    for (const auto& [kind, starts] : kinds) {
      double sum = 0;
      for (const auto& [phase, milliseconds] : starts.phases) sum += phase == name ? milliseconds : 0;
      out << fmt::format("{:>10.2f}", sum / static_cast<double>(starts.startup.size()));
    }
    out << "\n";
  }
}

void check_iterations(const StartupArguments& arguments) {
  const auto check = [](const char* name, std::int64_t count) {
    USER_CHECK(count >= 0 && count <= kMostIterations, "[{}] must be in [0, {}], but is {}", name, kMostIterations,
               count);
  };
  check("--num-iters-cold", arguments.cold);
  check("--num-iters-warm", arguments.warm);
  check("--num-iters-warmup", arguments.warm_up);
  USER_CHECK(arguments.cold + arguments.warm > 0,
             "[bench startup] there is nothing to measure: --num-iters-cold and --num-iters-warm are 0");
}

}  // namespace

void StartupArguments::declare(Flags& flags) {
  model.declare(flags);
  flags.option("--num-iters-cold", cold, "Starts with an empty cache.", {.shows_default = true});
  flags.option("--num-iters-warm", warm, "Starts with a filled cache.", {.shows_default = true});
  flags.option("--num-iters-warmup", warm_up, "Starts that fill the cache before.", {.shows_default = true});
  flags.option("-t,--threads", threads, "Threads that compute.");
  flags.option("--output-json", output, "A file for the report as JSON.");
  flags.flag("--json", json, "Print JSON.");
  flags.flag("--once", once, "Start once, in this process, and print its phases; what every iteration runs.");
}

int bench_startup(const StartupArguments& arguments, VerbCall& call) {
  if (!arguments.threads.empty()) set_option(call.options, "threads", arguments.threads, "command line");
  if (arguments.once) return start_once(arguments, call);
  check_iterations(arguments);
  if (!arguments.output.empty()) check_can_write(arguments.output, "--output-json");
  const std::vector<std::string> words = words_of_iteration(arguments, call);
  std::vector<std::pair<std::string, Starts>> kinds;
  if (arguments.cold > 0) {
    Starts& cold = kinds.emplace_back("cold", Starts()).second;
    for (std::int64_t i = 0; i < arguments.cold; ++i) add_start(cold, words, CacheFolder().path());
  }
  if (arguments.warm > 0) {
    const CacheFolder cache;
    Starts unread, warm;
    for (std::int64_t i = 0; i < arguments.warm_up; ++i) add_start(unread, words, cache.path());
    for (std::int64_t i = 0; i < arguments.warm; ++i) add_start(warm, words, cache.path());
    if (arguments.warm_up > 0 && !warm.all_hit)
      notes_to(call)(fmt::format("[bench startup] warm starts compiled, because a cache in {} kept nothing",
                                 quote(temporary_root(), kLongestPath)));
    kinds.emplace_back("warm", std::move(warm));
  }
  const Json report = report_json(arguments.model.name, kinds);
  if (!arguments.output.empty()) write_then_rename(arguments.output, json_text(report, 4) + "\n");
  if (arguments.json) {
    call.out << json_text(report, 2) << "\n";
  } else {
    print_report(kinds, call.out);
  }
  return 0;
}

}  // namespace weft
