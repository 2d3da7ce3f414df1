#pragma once

// Opens the model that a user names, for the interfaces of the program: the command line and the C interface.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "engine/engine.h"
#include "options/effective_options.h"

namespace weft {

struct ModelRequest {
  std::string name;  // a GGUF file, a folder with config.json, a built-in name, or an artifact of `weft compile`
  std::string checkpoint = {};  // the model of an artifact whose checkpoint cannot be found otherwise; else ""
  Options options = {};         // as requested
  EnvironmentLookup environment = process_environment();
};

// Receives each sentence for the user when it is known, so that an error comes after the notes that may explain it.
using NoteFunction = std::function<void(const std::string& sentence)>;

struct OpenedModel {
  std::shared_ptr<Context> context;
  Checkpoint checkpoint;
  std::vector<OptionDifference> differences;  // of the context's options from those requested
};

// Opens a Context (builtin/context.h) and the checkpoint. For an artifact the Context has its Plans, and options that
// the user did not set take the values it was compiled with. UserError where there is no such model, or where the
// artifact does not fit. `watch` receives the laps options, context and checkpoint.
OpenedModel open_model(const ModelRequest& request, const NoteFunction& note, Stopwatch* watch = nullptr);

// The same with an Engine, whose notes and warnings about the model follow.
std::unique_ptr<Engine> open_engine(const ModelRequest& request, const NoteFunction& note, Stopwatch* watch = nullptr);

}  // namespace weft
