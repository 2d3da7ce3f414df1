#include "report/explain.h"

#include <ostream>

#include <nlohmann/json.hpp>

#include "apps/cli/session.h"
#include "base/version.h"
#include "builtin/models.h"
#include "engine/model_runner.h"

namespace weft {
namespace {

struct ExplainArguments {
  ModelArgument model;
  bool json = false;
};

int explain(const ExplainArguments& arguments, VerbCall& call) {
  Explanation explanation;
  explanation.version = kVersion;
  explanation.model = arguments.model.name;
  Stopwatch watch;
  const auto context = open_context(call, &explanation.differences);
  watch.lap("context");
  Checkpoint checkpoint = Checkpoint::open(arguments.model.path(call));
  watch.lap("checkpoint");
  const ModelRunner runner(context, std::move(checkpoint), make_model_registry(), &watch);
  explanation.options = context->options;
  explanation.records = runner.records();
  const MemoryUse memory = runner.memory_use();
  explanation.memory = {.weights = memory.weights,
                        .activations_planned = memory.activations_planned,
                        .activations_measured = memory.activations_allocated,
                        .kv_cache = memory.kv_of_longest_sequence};
  watch.lap("report");
  explanation.phases = watch.laps();
  call.out << (arguments.json ? explain_json(explanation).dump(2) + "\n" : explain_text(explanation));
  return 0;
}

}  // namespace
}  // namespace weft

VERB(explain) {
  verbs.add("explain",
            {"Say what the compiler did with a model, and why.", [](Flags& flags, VerbCall& call) -> VerbBody {
               auto arguments = std::make_shared<ExplainArguments>();
               arguments->model.declare(flags);
               flags.flag("--json", arguments->json, "Print JSON.");
               return [arguments, &call] { return explain(*arguments, call); };
             }});
}
