#include "builtin/models.h"

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr BuiltinModel kModels[] = {
#define BUILTIN_MODEL(name, package, version, file, bytes, sha256) {name, package, version, file, bytes, sha256},
#include "builtin/models.def"
#undef BUILTIN_MODEL
};

}  // namespace

ModelRegistry make_model_registry() {
  ModelRegistry registry;
  for (const ModelEntry& entry : model_table()) entry.define(registry);
  return registry;
}

std::span<const BuiltinModel> builtin_models() { return kModels; }

std::string resolve_model(const std::string& name_or_path, const std::string& models_folder, const HubCache& hub) {
  USER_CHECK(!name_or_path.empty(), "[model] a path or a built-in name must be given");
  const std::string in_folder = models_folder + "/" + name_or_path;
  std::vector<std::string> names, paths = {in_folder, in_folder + ".gguf"};
  const BuiltinModel* builtin = nullptr;
  for (const BuiltinModel& model : kModels) {
    names.push_back(model.name);
    if (name_or_path == model.name) builtin = &model;
  }
  if (builtin != nullptr) paths.insert(paths.begin(), models_folder + "/" + builtin->file);
  paths.insert(paths.begin(), name_or_path);
  std::string unknown;  // the first path for which the system does not say whether something is there
  for (const std::string& path : paths) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return path;
    if (error && unknown.empty()) unknown = path;
  }
  if (!unknown.empty()) static_cast<void>(file_status(unknown));  // throws the reason of the system
  if (const std::optional<std::string> path = hub.find(name_or_path)) return *path;
  USER_CHECK(hub.folder.empty() || !is_hub_name(name_or_path),
             "[model] there is nothing at {}, nothing of that name in {}, and nothing of it in the hub's cache, {}; "
             "`hf download {}` fetches it",
             quote(name_or_path), models_folder, hub.folder, name_or_path.substr(0, name_or_path.find(':')));
  USER_CHECK(builtin == nullptr, "[model] {} is not at {}; fetch it with: tools/fetch_model.py {}", name_or_path,
             paths[1], name_or_path);
  fail_user("[model] there is nothing at {} and nothing of that name in {}, and no built-in model has it{}",
            quote(name_or_path), models_folder, suggestion(name_or_path, names));
}

std::string resolve_model(const std::string& name_or_path, const Options& options,
                          const EnvironmentLookup& environment) {
  std::error_code ignored;  // reported if nothing is found elsewhere
  if (std::filesystem::exists(name_or_path, ignored)) {
    USER_CHECK(options.revision.empty(), "[revision] is of a model of the hub's cache, but MODEL is a path, {}",
               quote(name_or_path));
    return name_or_path;
  }
  const std::string& root = options.models_root;
  HubCache hub = HubCache::of_user(environment);
  hub.revision = options.revision;
  return resolve_model(name_or_path, root.empty() ? models_folder(environment) : root, hub);
}

}  // namespace weft
