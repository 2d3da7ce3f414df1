#pragma once

// The model architectures of src/models, and the models that can be named instead of a path.

#include <cstdint>
#include <span>
#include <string>

#include "base/environment.h"
#include "base/options.h"
#include "models/model.h"

namespace weft {

ModelRegistry make_model_registry();

// One row of models.def: where a built-in model comes from and what its file must be.
struct BuiltinModel {
  const char* name;
  const char* package;  // on PyPI
  const char* version;
  const char* file;
  std::int64_t bytes;
  const char* sha256;
};
std::span<const BuiltinModel> builtin_models();

// The path of a built-in name inside `models_folder`, or the argument itself when it is a path. UserError for a name
// whose file is not there (saying how to fetch it), and with the nearest known name when nothing is at the path.
std::string resolve_model(const std::string& name_or_path, const std::string& models_folder);

// The same in the folder of --models-root, or in this user's; the environment counts for a name alone.
std::string resolve_model(const std::string& name_or_path, const Options& options,
                          const EnvironmentLookup& environment);

}  // namespace weft
