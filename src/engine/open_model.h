#pragma once

// From what a user names to what an engine takes.

#include <functional>
#include <memory>
#include <string>

#include "base/environment.h"
#include "compiler/context.h"
#include "io/checkpoint.h"

namespace weft {

struct OpenedModel {
  std::shared_ptr<Context> context;
  Checkpoint checkpoint;
};

// `name` is a GGUF file, a folder with config.json, a built-in name, or an artifact of `weft compile`: of that the
// Context has the Plans, and the options that were not asked for become those that it was compiled with. `checkpoint`
// is the model of an artifact, where it is not found by itself; else "". UserError where there is no such model, or the
// artifact does not fit.
OpenedModel open_model(const std::string& name, const std::string& checkpoint, Options options,
                       const EnvironmentLookup& environment,
                       const std::function<std::shared_ptr<Context>(Options)>& open_context);

}  // namespace weft
