#include "models/model.h"

#include "base/error.h"

namespace weft {

std::string ModelDefinition::key(const std::string& weight_name, bool is_gguf, int layer) const {
  for (const WeightName& weight : weights) {
    if (weight.name != weight_name) continue;
    std::string key = is_gguf ? weight.gguf : weight.hugging_face;
    if (const std::size_t at = key.find("{}"); at != std::string::npos) key.replace(at, 2, std::to_string(layer));
    return key;
  }
  CHECK(false, "the model has no weight named {}", weight_name);
  return "";
}

void ModelRegistry::add(ModelDefinition definition) {
  for (const std::string& architecture : definition.architectures)
    CHECK(models_.emplace(architecture, definition).second, "architecture {} is already registered", architecture);
}

const ModelDefinition& ModelRegistry::find(const std::string& architecture, const std::string& where) const {
  const std::vector<std::string> known = architectures();
  check_architecture(architecture, known, where);
  return models_.at(architecture);
}

std::vector<std::string> ModelRegistry::architectures() const {
  std::vector<std::string> names;
  for (const auto& [name, definition] : models_) names.push_back(name);
  return names;
}

}  // namespace weft
