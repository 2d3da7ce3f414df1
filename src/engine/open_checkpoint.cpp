#include "engine/open_checkpoint.h"

namespace weft {

Checkpoint open_checkpoint(const std::string& path, const Options& options, const ModelRegistry& models) {
  if (options.load_format != "dummy") return Checkpoint::open(path);
  return Checkpoint::open_dummy(path, [&](const Checkpoint& config) {
    const ModelDefinition& model = models.find(config);
    return config.is_gguf() ? std::vector<NamedMeta>() : model.tensors(config.config(model.facts));
  });
}

}  // namespace weft
