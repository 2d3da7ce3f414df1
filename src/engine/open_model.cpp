#include "engine/open_model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/artifact/artifact.h"
#include "engine/open_checkpoint.h"

namespace weft {
namespace {

// Each warning about the tokenizer's files begins with the file's name in brackets. The engine may have noted the same
// sentence with another beginning.
void note_warnings(const Vocabulary& vocabulary, const std::vector<std::string>& notes, const NoteFunction& note) {
  for (const std::string& warning : vocabulary.warnings) {
    const std::string sentence = warning.substr(warning.find("] ") + 1);
    const bool is_noted =
        std::any_of(notes.begin(), notes.end(), [&](const std::string& one) { return one.ends_with(sentence); });
    if (!is_noted) note(warning);
  }
}

}  // namespace

OpenedModel open_model(const ModelRequest& request, const NoteFunction& note, Stopwatch* watch) {
  const auto lap = [&](const char* name) {
    if (watch != nullptr) watch->lap(name);
  };
  lap("options");
  std::optional<Artifact> artifact;
  Options options = request.options;
  if (is_artifact(request.name)) {
    artifact = Artifact::open(request.name);
    artifact->take_options(options);
  } else {
    USER_CHECK(request.checkpoint.empty(), "[--checkpoint] is for artifacts, but {} is none",
               quote(request.name, 1000));
  }
  OpenedContext opened = open_context(std::move(options));
  for (const std::string& sentence : opened.notes) note(sentence);
  if (watch != nullptr) show_laps(*watch, opened.context->timeline, "start");
  lap("context");
  Checkpoint checkpoint = artifact ? artifact->open_checkpoint(request.checkpoint, request.options, request.environment)
                                   : open_checkpoint(resolve_model(request.name, request.options, request.environment),
                                                     request.options, make_model_registry());
  if (artifact) artifact->load_plans(*opened.context, checkpoint);
  lap("checkpoint");
  return {std::move(opened.context), std::move(checkpoint), std::move(opened.differences)};
}

std::unique_ptr<Engine> open_engine(const ModelRequest& request, const NoteFunction& note, Stopwatch* watch) {
  OpenedModel opened = open_model(request, note, watch);
  auto engine = std::make_unique<Engine>(opened.context, std::move(opened.checkpoint), make_model_registry(), watch);
  const std::vector<std::string>& notes = engine->notes();
  for (const std::string& sentence : notes) note(sentence);
  if (engine->has_tokenizer()) note_warnings(engine->tokenizer().vocabulary(), notes, note);
  const std::string& last = engine->context().options.compile_to;
  if (last != "plan") note(fmt::format("[compile-to] the compiler stops after {}, so the model runs op by op", last));
  return engine;
}

}  // namespace weft
