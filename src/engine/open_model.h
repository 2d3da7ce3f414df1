#pragma once

// Opens the model that a user names, in the form that an engine takes.

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

// `name` is a GGUF file, a folder with config.json, a built-in name, or an artifact of `weft compile`. For an artifact
// the Context has its Plans, and options that the user did not set take the values it was compiled with. `checkpoint`
// is the model of an artifact whose checkpoint cannot be found otherwise; else "". UserError where there is no such
// model, or where the artifact does not fit.
OpenedModel open_model(const std::string& name, const std::string& checkpoint, Options options,
                       const EnvironmentLookup& environment,
                       const std::function<std::shared_ptr<Context>(Options)>& open_context);

}  // namespace weft
