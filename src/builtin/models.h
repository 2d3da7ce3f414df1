#pragma once

// The model architectures of src/models, and the models that have a built-in name.

#include <cstdint>
#include <span>
#include <string>

#include "base/environment.h"
#include "models/model.h"
#include "options/options.h"

namespace weft {

ModelRegistry make_model_registry();

// One row of models.def: the source of a built-in model and the properties of its file.
struct BuiltinModel {
  const char* name;
  const char* package;  // on PyPI
  const char* version;
  const char* file;
  std::int64_t bytes;
  const char* sha256;
};
std::span<const BuiltinModel> builtin_models();

// The path of a model in `models_folder` by its name, which is a built-in one, that of an entry, or that of an entry
// without .gguf; a path at which something exists is returned unchanged. UserError for a built-in name whose file is
// missing (it says how to fetch it), and, with the nearest built-in name, if there is no such model.
std::string resolve_model(const std::string& name_or_path, const std::string& models_folder);

// The same, in the folder of --models-root, or else in this user's folder. The environment, which says where that is,
// is not read if something exists at the path.
std::string resolve_model(const std::string& name_or_path, const Options& options,
                          const EnvironmentLookup& environment);

}  // namespace weft
