#include "compiler/tune/tune.h"

#include <cmath>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fmt/ranges.h>

#include "apps/cli/session.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "builtin/models.h"
#include "engine/compile/model_compilation.h"

namespace weft {
namespace {

struct TuneArguments {
  ModelArgument model;  // or the word merge
  std::string first, second;
  std::string output;
  double budget = 60;
  bool json = false;
};

// Everything that one database says of the calls named by `keys`.
struct Findings {
  const TuningDatabase& database;
  const std::vector<std::string>& keys;
  std::map<std::string, TuningDecision> decisions = decide(database);
};

std::string layout_text(const TuningEntry& entry, const TunedTime& time) {
  if (entry.weight < 0) return "";
  return time.packing.empty() ? "plain" : time.packing;
}

std::int64_t best_of(const std::vector<std::int64_t>& rounds) {
  return *std::min_element(rounds.begin(), rounds.end());
}

Json calls_json(const Findings& findings) {
  Json list = Json::array();
  for (const std::string& key : findings.keys) {
    const TuningEntry& entry = findings.database.entries.at(key);
    const TuningDecision& decision = findings.decisions.at(key);
    Json times = Json::array();
    for (const TunedTime& time : entry.times)
      times.push_back(
          {{"provider", time.provider}, {"weight", layout_text(entry, time)}, {"nanoseconds", time.nanoseconds}});
    list.push_back({{"call", key},
                    {"op", entry.op},
                    {"range", {entry.call.range.lo, entry.call.range.hi}},
                    {"rows", entry.rows},
                    {"times", times},
                    {"standard", entry.standard},
                    {"provider", decision.provider},
                    {"speedup", decision.speedup},
                    {"reason", decision.reason}});
  }
  return list;
}

std::string calls_text(const Findings& findings) {
  std::string text;
  for (const std::string& key : findings.keys) {
    const TuningEntry& entry = findings.database.entries.at(key);
    const TuningDecision& decision = findings.decisions.at(key);
    text += key + "\n";
    for (const TunedTime& time : entry.times) {
      text += fmt::format("  {} {:<10}{:<8}", time.provider == decision.provider ? '*' : ' ', time.provider,
                          layout_text(entry, time));
      for (std::size_t size = 0; size < entry.rows.size(); ++size)
        text += fmt::format("{:>12.1f} us at {:<6}", static_cast<double>(best_of(time.nanoseconds[size])) / 1e3,
                            entry.rows[size] == 0 ? std::string("any") : fmt::format("{}", entry.rows[size]));
      text.resize(text.find_last_not_of(' ') + 1);
      text += "\n";
    }
    text += fmt::format("    {}: {}\n", decision.provider, decision.reason);
  }
  return text;
}

std::string summary_text(const TuneReport& report, const std::string& path) {
  std::string text;
  if (report.measured == 0 && report.left == 0) {
    text = fmt::format("nothing was measured: {} calls are in {} already", report.known, path);
  } else {
    text = fmt::format("{} calls were measured, {} were known", report.measured, report.known);
    if (report.left > 0)
      text += fmt::format(", {} were left when the time was over: run it again, or with more --budget", report.left);
  }
  return text + fmt::format("; {} calls have one provider only\n", report.unrivalled);
}

int merge(const TuneArguments& arguments, VerbCall& call) {
  USER_CHECK(!arguments.first.empty() && !arguments.second.empty() && !arguments.output.empty(),
             "[tune merge] wants two databases and a third: tune merge A B -o C");
  constexpr std::size_t kMostBytes = 64u << 20;
  const auto read = [](const std::string& path) { return parse_tuning(read_file(path, kMostBytes), path); };
  const TuningDatabase merged = merge_tuning(read(arguments.first), read(arguments.second));
  write_then_rename(arguments.output, merged.text());
  call.err << fmt::format("weft: {} calls are in {}\n", merged.entries.size(), arguments.output);
  if (arguments.json)
    call.out << json_text(Json{{"file", arguments.output}, {"known", merged.entries.size()}}, 2) << "\n";
  return 0;
}

// What is timed is compared with the default order, for the ranges that a compiled model has.
std::shared_ptr<Context> open_tuning_context(const VerbCall& call) {
  USER_CHECK(call.options.ir_op_priority.empty(),
             "[tune] times providers against the default order: --ir-op-priority has no place here");
  // A pasted config of vLLM has it, so it is no error.
  VerbCall in_default_order = call;
  if (!std::exchange(in_default_order.options.custom_ops, {}).empty())
    call.err << "weft: [cc.custom_ops] has no effect in this run: providers are timed against the default order\n";
  USER_CHECK(call.options.tuned.empty(),
             "[tune] does not read --tuned: -o FILE is both what it reads and what it writes");
  USER_CHECK(call.options.tuning_budget == 0, "[tune] has a --budget of its own: --tuning-budget has no place here");
  std::shared_ptr<Context> context = open_context(in_default_order);
  check_host_is_measured(*context, "tune");
  USER_CHECK(context->options.mode != "none" && context->options.compile_to == "plan",
             "[tune] wants a model that is compiled to the end: without --enforce-eager, -O0 and --compile-to");
  return context;
}

int tune_model(const TuneArguments& arguments, VerbCall& call) {
  USER_CHECK(arguments.first.empty(), "[tune] wants one model, but is given {} too", quote(arguments.first));
  USER_CHECK(std::isfinite(arguments.budget) && arguments.budget > 0, "[--budget] must be above 0, but is {}",
             arguments.budget);
  const auto context = open_tuning_context(call);
  const std::string& root = call.options.cache_root;
  const std::string path = arguments.output.empty()
                               ? (root.empty() ? cache_folder(call.environment) : root) + "/tuned.jsonl"
                               : arguments.output;
  TuningDatabase database{.fingerprint = fingerprint_of(context->device), .entries = {}};
  std::error_code ignored;  // reading or writing it says what is wrong
  const bool is_there = std::filesystem::exists(path, ignored);
  if (is_there) database = read_tuning(path, database.fingerprint);
  ModelCompilation model(context, arguments.model.open(call), make_model_registry());
  model.compile();
  if (!is_there) {
    // Whether it can be written is known before minutes are spent.
    if (arguments.output.empty()) make_folders(std::filesystem::path(path).parent_path());
    write_then_rename(path, database.text());
  }
  TuningTimer timer;
  const TuneReport report =
      tune(*context, model.records(), database,
           {.budget_seconds = arguments.budget, .timer = &timer, .now = static_cast<std::int64_t>(std::time(nullptr))});
  const Findings findings{database, report.calls};
  if (arguments.json) {
    call.out << json_text(Json{{"file", path},
                               {"measured", report.measured},
                               {"known", report.known},
                               {"left", report.left},
                               {"unrivalled", report.unrivalled},
                               {"calls", calls_json(findings)}},
                          2)
             << "\n";
  } else {
    call.out << calls_text(findings) << summary_text(report, path);
  }
  // Written last: on a full disk the user has at least what was printed.
  if (report.measured > 0) write_then_rename(path, database.text());
  return 0;
}

}  // namespace
}  // namespace weft

VERB(tune) {
  verbs.add("tune", {"Time the providers of a model's ops, for --tuned; or: tune merge A B -o C.",
                     [](Flags& flags, VerbCall& call) -> VerbBody {
                       auto arguments = std::make_shared<TuneArguments>();
                       arguments->model.declare(flags);
                       flags.option("first", arguments->first, "Of merge: the first database.");
                       flags.option("second", arguments->second, "Of merge: the second one.");
                       flags.option("-o,--output", arguments->output,
                                    "The database; what it holds is not measured again. By default tuned.jsonl in the "
                                    "cache folder.");
                       flags.option("--budget", arguments->budget, "Seconds.", {.shows_default = true});
                       flags.flag("--json", arguments->json, "Print JSON.");
                       return [arguments, &call] {
                         return arguments->model.name == "merge" ? merge(*arguments, call)
                                                                 : tune_model(*arguments, call);
                       };
                     }});
}
