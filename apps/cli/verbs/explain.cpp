#include "report/explain.h"

#include <ostream>

#include <sys/prctl.h>

#include "apps/cli/pattern_lines.h"
#include "apps/cli/result_file.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/version.h"
#include "builtin/models.h"
#include "compiler/check/pattern_findings.h"
#include "engine/run/largest_step.h"
#include "report/json_page.h"

namespace weft {
namespace {

struct ExplainArguments {
  ModelArgument model;
  std::string why_not;  // PATTERN or PATTERN@NODE
  std::string html;     // the file of the page
  bool measure = false;
  bool json = false;
};

// Prints where the pattern matches in each graph and range, and where it almost does. As JSON it is the list of `weft
// graph match --json`, whose objects also have the range.
void say_why_not(const ExplainArguments& arguments, const Context& context, const ModelRunner& runner, VerbCall& call) {
  PatternLines lines(parse_pattern_question(arguments.why_not, "--why-not"), context, call.out);
  Json list = Json::array();
  for (const ModelGraph* graph : runner.model().graphs())
    for (const TokenRange& range : graph->ranges) {
      if (arguments.json) {
        for (Json& found : lines.json(*graph->traced, range)) {
          found["range"] = {range.lo, range.hi};
          list.push_back(std::move(found));
        }
        continue;
      }
      const std::string rows = graph->ranges.size() == 1 ? "" : fmt::format(", {} to {} rows", range.lo, range.hi);
      lines.print(graph->traced->name + rows, *graph->traced, range);
    }
  lines.check_node();
  if (arguments.json) call.out << json_text(list, 2) << "\n";
}

int explain(const ExplainArguments& arguments, VerbCall& call) {
  if (!arguments.html.empty()) check_can_write(arguments.html, "--html");
  Explanation explanation;
  explanation.version = kVersion;
  explanation.model = arguments.model.name;
  Stopwatch& watch = call.watch;
  if (arguments.measure) ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // a huge page would be taken as a whole
  auto [context, checkpoint, differences] = open_model(arguments.model.request(call), notes_to(call), &watch);
  ModelRunner runner(context, std::move(checkpoint), make_model_registry(), &watch);
  print_notes(runner.notes(), call.err);
  if (!arguments.why_not.empty()) {
    USER_CHECK(runner.model().graphs().front()->traced != nullptr, "[--why-not] there is no graph");
    USER_CHECK(!arguments.measure, "[--measure] is for the report, and --why-not prints none");
    say_why_not(arguments, *context, runner, call);
    return 0;
  }
  runner.allocate_pages(1);  // without pages a device captures nothing
  runner.set_ready();
  watch.lap("pages");
  if (arguments.measure) {
    USER_CHECK(context->stream_device == nullptr, "[--measure] the memory of {} is not measured",
               device_text(context->device.id));
    USER_CHECK(runner.forward_plan() != nullptr, "[--measure] no memory is planned with these options");
    run_largest_step(runner);
    watch.lap("measure");
  }
  explanation.options = context->options;
  explanation.differences = std::move(differences);
  explanation.device_functions = context->generated->device_functions();
  explanation.cache = runner.model().cache_use();
  explanation.replay = runner.replay_report();
  explanation.guards = runner.model().guard_reports();
  const MemoryUse memory = runner.memory_use();
  explanation.memory = {.weights = memory.weights,
                        .activations_planned = memory.activations_planned,
                        .activations_measured = memory.activations_measured,
                        .kv_cache = memory.kv_of_longest_sequence,
                        .kv_cache_measured = arguments.measure ? memory.kv_measured : std::nullopt};
  const bool was_compiled = !explanation.cache.hit && context->stored_plans == nullptr;
  explanation.times = start_times(watch, was_compiled ? runner.records() : std::vector<CompileRecord>());
  explanation.records = runner.records();
  explanation.tuning = context->size_tuning;
  if (!arguments.html.empty()) {
    const std::string title = "weft explain " + explanation.model;
    write_then_rename(arguments.html, json_page(title, explain_text(explanation), explain_json(explanation)));
    return 0;
  }
  call.out << (arguments.json ? json_text(explain_json(explanation), 2) + "\n" : explain_text(explanation));
  return 0;
}

}  // namespace
}  // namespace weft

VERB(explain) {
  verbs.add("explain",
            {"Report what the compiler did with a model, and why.", [](Flags& flags, VerbCall& call) -> VerbBody {
               auto arguments = std::make_shared<ExplainArguments>();
               arguments->model.declare_to_run(flags);
               flags.option("--why-not", arguments->why_not,
                            "Instead: where this pattern or fusion matches, and where it almost does; PATTERN@NODE "
                            "for one node.");
               flags.flag("--measure", arguments->measure,
                          "Run one step of the most tokens that a step takes, for the memory that it needs.");
               flags.flag("--json", arguments->json, "Print JSON.");
               flags.option("--html", arguments->html, "Instead of printing, write the report as a page to this file.",
                            {.excludes = {"--json", "--why-not"}});
               return [arguments, &call] { return explain(*arguments, call); };
             }});
}
