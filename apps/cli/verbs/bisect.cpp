#include "compiler/check/bisect.h"

#include <numeric>

#include "apps/cli/session.h"
#include "base/error.h"
#include "base/json.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/open_checkpoint.h"

namespace weft {
namespace {

struct BisectArguments {
  ModelArgument model;
  PromptArgument prompt;
  bool json = false;
};

// The logits at every position of the prompt.
BisectRun run_model(const Options& options, const std::string& path, const std::string& prompt) {
  const ModelRegistry models = make_model_registry();
  Engine engine(open_context(options).context, open_checkpoint(path, options, models), models);
  const std::vector<int> ids = engine.tokenizer().encode(prompt);
  USER_CHECK(!ids.empty(), "[bisect] the prompt has no token");
  std::vector<int> rows(ids.size());
  std::iota(rows.begin(), rows.end(), 0);
  BisectRun run;
  engine.score(ids, rows, [&](int, std::span<const float> logits) {
    run.values.insert(run.values.end(), logits.begin(), logits.end());
  });
  run.records = engine.runner().records();
  return run;
}

std::string verdict(const BisectResult& result) {
  if (!result.differs) return "compiled and eager output are the same bits";
  if (result.pass.empty()) return "compiled and eager output differ, and no single pass makes the difference";
  std::string text = fmt::format("without {} compiled and eager output are the same bits", result.pass);
  if (result.rewrites > 0)
    text += fmt::format("\nrewrite {} of {} makes the difference: {} at %{} in {}", result.rewrite, result.rewrites,
                        result.pattern, result.node, result.graph);
  return text;
}

int run_bisect(const BisectArguments& arguments, VerbCall& call) {
  const std::string prompt = arguments.prompt.read(call), path = arguments.model.path(call);
  const auto context = open_context(call);
  const BisectResult result =
      bisect(call.options, *context, [&](const Options& options) { return run_model(options, path, prompt); });
  if (arguments.json) {
    const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    const Json report{{"differs", result.differs},          {"pass", or_null(result.pass)},
                      {"pattern", or_null(result.pattern)}, {"graph", or_null(result.graph)},
                      {"node", or_null(result.node)},       {"rewrite", result.rewrite},
                      {"rewrites", result.rewrites},        {"runs", result.runs}};
    call.out << json_text(report, 2) << "\n";
  } else {
    call.out << verdict(result) << fmt::format("\n{} runs\n", result.runs);
  }
  return result.differs ? 3 : 0;  // a promise of ours is broken
}

}  // namespace
}  // namespace weft

VERB(bisect) {
  verbs.add("bisect", {"Find the rewrite that makes compiled output differ from eager output.",
                       [](Flags& flags, VerbCall& call) -> VerbBody {
                         auto arguments = std::make_shared<BisectArguments>();
                         arguments->model.declare(flags);
                         arguments->prompt.declare(flags);
                         flags.flag("--json", arguments->json, "Print JSON.");
                         return [arguments, &call] { return run_bisect(*arguments, call); };
                       }});
}
