#include <iostream>

#include "apps/cli/output_argument.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/json.h"
#include "base/resident_memory.h"

namespace weft {
namespace {

struct CompleteArguments {
  ModelArgument model;
  PromptArgument prompt;
  SamplingArguments sampling;
  OutputArgument output;
  bool statistics = false;
  bool json = false;
};

int complete(const CompleteArguments& arguments, VerbCall& call) {
  const std::string prompt = arguments.prompt.read(call);
  const auto engine = open_engine(arguments.model.request(call), notes_to(call), &call.watch);
  SamplingParameters parameters = arguments.sampling.parameters(*engine, call);
  parameters.constraint = arguments.output.constraint(*engine);
  const std::vector<int> ids = engine->tokenizer().encode(prompt);
  const auto show = [&](const std::string& text) {
    if (!arguments.json) call.out << text << std::flush;
  };
  const Engine::Generation generation = engine->generate(ids, parameters, show);
  if (arguments.json) {
    const std::optional<std::int64_t> kv = engine->runner().memory_use().kv_measured;
    call.out << json_text(Json{{"prompt", prompt},
                               {"text", generation.text},
                               {"tokens", generation.tokens},
                               {"finish_reason", reason_text(generation.finished)},
                               {"prompt_tokens", ids.size()},
                               {"generation_tokens", generation.tokens.size()},
                               {"prompt_seconds", generation.prompt_seconds},
                               {"generation_seconds", generation.generation_seconds},
                               {"peak_memory_bytes", peak_resident_bytes()},
                               {"kv_memory_bytes", kv ? Json(*kv) : Json(nullptr)}})
             << "\n";
  } else {
    call.out << "\n";
  }
  if (arguments.statistics) print_statistics(generation, ids.size(), engine->runner(), call.err);
  return 0;
}

}  // namespace
}  // namespace weft

VERB(complete) {
  verbs.add("complete", {"Continue a text.", [](Flags& flags, VerbCall& call) -> VerbBody {
                           auto arguments = std::make_shared<CompleteArguments>();
                           arguments->model.declare_to_run(flags);
                           arguments->prompt.declare(flags);
                           arguments->sampling.declare(flags);
                           arguments->output.declare(flags);
                           flags.flag("--stats", arguments->statistics, "Print rates, memory and captures at the end.");
                           flags.flag("--json", arguments->json, "Print one JSON object instead of the text.");
                           return [arguments, &call] { return complete(*arguments, call); };
                         }});
}
