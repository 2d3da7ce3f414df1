#pragma once

// The model architectures of src/models, and the models that have a built-in name.

#include <cstdint>
#include <span>
#include <string>

#include "base/environment.h"
#include "builtin/hub_cache.h"
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

// The path of a model by its name: a built-in one, or that of an entry of `models_folder`, with .gguf or without, or
// one of the hub's cache. A path at which something exists is returned unchanged. UserError for a built-in name whose
// file is missing (it says how to fetch it), and, with the nearest built-in name, if there is no such model.
std::string resolve_model(const std::string& name_or_path, const std::string& models_folder, const HubCache& hub = {});

// The same, in the folder of --models-root, or else in this user's folder, and in the user's cache of the hub. The
// environment, which says where these are, is not read if something exists at the path.
std::string resolve_model(const std::string& name_or_path, const Options& options,
                          const EnvironmentLookup& environment);

}  // namespace weft
