#include "models/model.h"

#include <algorithm>

#include "base/error.h"
#include "io/quantized_weight.h"

namespace weft {
namespace {

bool is_quantized(const ModelConfig& config, const std::string& key, const std::vector<std::int64_t>& shape) {
  return shape.size() == 2 && config.quantization && config.quantization->quantizes(key);
}

void check_weight(const Checkpoint& checkpoint, const ModelConfig& config, const std::string& key,
                  const std::vector<std::int64_t>& wanted) {
  if (is_quantized(config, key, wanted)) {
    check_quantized_weight(checkpoint, *config.quantization, key, wanted[0], wanted[1]);
    return;
  }
  const Meta& meta = checkpoint.tensor(key).meta;
  const Shape shape(wanted.begin(), wanted.end());
  USER_CHECK(meta.shape == shape, "[{}] tensor {} must have the shape {} that the config gives it, but is {}",
             checkpoint.path(), key, shape_text(shape), meta.text());
  // One-byte codes have no meaning without scales, and only a quantization_config defines which tensors are the scales.
  const bool is_number = is_floating(meta.dtype) && dtype_info(meta.dtype).block_bytes > 1;
  USER_CHECK(is_number || (is_block(meta.dtype) && shape.size() > 1),
             "[{}] tensor {} must hold floating point numbers{}, but is {}", checkpoint.path(), key,
             shape.size() > 1 ? " or blocks" : "", meta.text());
}

}  // namespace

const ModelWeight& ModelDefinition::weight(const std::string& name) const {
  const auto found =
      std::find_if(weights.begin(), weights.end(), [&](const ModelWeight& weight) { return weight.name == name; });
  CHECK(found != weights.end(), "the model has no weight named {}", name);
  return *found;
}

bool ModelDefinition::has(const std::string& weight_name, const ModelConfig& config, int layer) const {
  return std::any_of(weights.begin(), weights.end(), [&](const ModelWeight& weight) {
    return weight.name == weight_name && !weight.shape(config, std::max(layer, 0)).empty();
  });
}

std::string ModelDefinition::key(const std::string& weight_name, CheckpointFormat format, int layer) const {
  std::string key = weight(weight_name).name_in(format);
  if (const std::size_t at = key.find("{}"); at != std::string::npos) key.replace(at, 2, std::to_string(layer));
  return key;
}

void ModelDefinition::visit_weights(const ModelConfig& config, const WeightVisitor& visit) const {
  for (const ModelWeight& weight : weights) {
    const std::int64_t layers = weight.is_per_layer() ? config.layer_count : 1;
    for (int layer = 0; layer < layers; ++layer) {
      const std::vector<std::int64_t> shape = weight.shape(config, layer);
      if (!shape.empty()) visit(key(weight.name, config.format, layer), shape);
    }
  }
}

std::vector<std::string> ModelDefinition::tensor_names(const ModelConfig& config) const {
  std::vector<std::string> all;
  visit_weights(config, [&](const std::string& key, const std::vector<std::int64_t>& shape) {
    if (!is_quantized(config, key, shape)) {
      all.push_back(key);
      return;
    }
    for (std::string& name : quantized_names(*config.quantization, key).all()) all.push_back(std::move(name));
  });
  return all;
}

std::vector<NamedMeta> ModelDefinition::tensors(const ModelConfig& config) const {
  std::vector<NamedMeta> tensors;
  visit_weights(config, [&](const std::string& key, const std::vector<std::int64_t>& shape) {
    if (is_quantized(config, key, shape)) {
      for (NamedMeta& part : quantized_tensors(*config.quantization, key, shape[0], shape[1]))
        tensors.push_back(std::move(part));
    } else {
      tensors.push_back({key, Meta::tensor(config.dtype, Shape(shape.begin(), shape.end()))});
    }
  });
  return tensors;
}

void ModelDefinition::check_weights(const Checkpoint& checkpoint, const ModelConfig& config) const {
  visit_weights(config, [&](const std::string& key, const std::vector<std::int64_t>& shape) {
    check_weight(checkpoint, config, key, shape);
  });
}

void ModelRegistry::add(ModelDefinition definition) {
  for (const std::string& architecture : definition.architectures)
    CHECK(models_.emplace(architecture, definition).second, "architecture {} is already registered", architecture);
  by_gguf_.emplace(definition.architecture_in_gguf(), definition.architectures[0]);
}

const ModelDefinition& ModelRegistry::find(const std::string& architecture, const std::string& where) const {
  if (const auto known = models_.find(architecture); known != models_.end()) return known->second;
  if (const auto known = by_gguf_.find(architecture); known != by_gguf_.end()) return models_.at(known->second);
  check_architecture(architecture, architectures(), where);
  return models_.at(architecture);
}

std::vector<std::string> ModelRegistry::architectures() const {
  std::vector<std::string> names;
  for (const auto& [name, definition] : models_) names.push_back(name);
  return names;
}

}  // namespace weft
