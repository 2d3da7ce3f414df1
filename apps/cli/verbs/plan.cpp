#include <algorithm>

#include "apps/cli/plan_report.h"
#include "apps/cli/target_argument.h"
#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "builtin/models.h"
#include "options/effective_options.h"

namespace weft {
namespace {

struct PlanArguments {
  ModelArgument model;
  TargetArgument target;
  std::string depth = "0";
  std::string bandwidth, flops;  // in 1e9 per second; "" where they are to be measured
  bool json = false;
};

std::optional<double> given_rate(const std::string& text, const char* flag) {
  if (text.empty()) return std::nullopt;
  const double billions = decimal_number(text, flag);
  USER_CHECK(billions > 0, "[{}] must be above 0, but is {}", flag, quote(text));
  return billions * 1e9;
}

int plan(const PlanArguments& arguments, VerbCall& call) {
  const std::int64_t depth = human_integer(arguments.depth, "--n-depth");
  for (const auto& [text, flag] : {std::pair(arguments.bandwidth, "--bandwidth"), {arguments.flops, "--flops"}})
    given_rate(text, flag);
  const auto context = arguments.target.open_context(call);
  const std::string path = arguments.model.path(call);
  // A folder that has only its config is described by that.
  if (!Checkpoint::has_weights(path)) call.options.load_format = "dummy";
  ModelCompilation model(context, arguments.model.open(call), make_model_registry());
  for (const std::string& note : model.notes()) call.err << "weft: " << note << "\n";
  const std::string excess = model.describe_excess_of_context();
  if (!excess.empty()) call.err << "weft: " << excess << "; the plan is for a machine that has it\n";
  if (eager_option(context->options).empty()) model.compile();
  PlanReport report{.version = kVersion,
                    .model = arguments.model.name,
                    .architecture = model.checkpoint().architecture(),
                    .weights_from = model.checkpoint().is_dummy() ? "config" : "checkpoint",
                    .device = context->device,
                    .context_length = model.facts().config.context_length,
                    .records = model.records(),
                    .memory = planned_memory(model)};
  USER_CHECK(depth >= 0 && depth < report.context_length,
             "[--n-depth] must leave a token of the context of {}, but is {}", report.context_length, depth);
  report.decode = planned_step(model, Phase::decode, 1, depth);
  report.prompt =
      planned_step(model, Phase::prompt, std::min(model.max_tokens(), report.context_length - depth), depth);
  report.peaks =
      peak_rates(*context, given_rate(arguments.bandwidth, "--bandwidth"), given_rate(arguments.flops, "--flops"));
  call.out << (arguments.json ? json_text(plan_json(report), 2) + "\n" : plan_report_text(report));
  return 0;
}

}  // namespace
}  // namespace weft

VERB(plan) {
  verbs.add("plan",
            {"Compile a model without its weights: choices, fusions, memory, and the rates that the machine allows.",
             [](Flags& flags, VerbCall& call) -> VerbBody {
               auto arguments = std::make_shared<PlanArguments>();
               flags.option("model,-m,--model", arguments->model.name,
                            "A GGUF file, a folder with config.json, a config.json alone, or a built-in name.",
                            {.required = true});
               arguments->target.declare(flags);
               flags.option("-d,--n-depth", arguments->depth, "Tokens in the cache before a step.",
                            {.shows_default = true});
               flags.option("--bandwidth", arguments->bandwidth,
                            "Memory bandwidth of the target in GB/s, instead of what is measured here.");
               flags.option("--flops", arguments->flops,
                            "Operations of the target in GFLOP/s, instead of what is measured here.");
               flags.flag("--json", arguments->json, "Print JSON.");
               return [arguments, &call] { return plan(*arguments, call); };
             }});
}
