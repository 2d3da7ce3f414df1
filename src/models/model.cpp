#include "models/model.h"

#include <algorithm>

#include "base/error.h"
#include "io/architecture_name.h"
#include "io/mxfp4_weight.h"
#include "io/quantized_weight.h"

namespace weft {
namespace {

bool is_mxfp4(const ModelConfig& config, const std::string& key) {
  return config.quantization && config.quantization->scheme == QuantizationScheme::mxfp4 &&
         config.quantization->quantizes(key);
}

// The config of the weight's module; null if the weight is plain.
const QuantizationConfig* quantization_of(const ModelConfig& config, const std::string& key,
                                          const std::vector<std::int64_t>& shape) {
  const bool may_be = is_mxfp4(config, key) || (shape.size() == 2 && config.quantization);
  const QuantizationConfig* own = may_be ? config.quantization->of(key) : nullptr;
  // mlx-lm leaves such modules plain. If there are files, their scales have decided already, and no rest is covered.
  const bool has_part_of_group = own != nullptr && own->groups.layout == GroupLayout::mlx &&
                                 config.quantization->covers_rest && shape[1] % own->groups.group_size != 0;
  return has_part_of_group ? nullptr : own;
}

// The shape of a weight as files of this format store it.
std::vector<std::int64_t> stored_shape(const ModelWeight& weight, const ModelConfig& config, int layer,
                                       const std::string& key, CheckpointFormat format,
                                       std::vector<std::int64_t> shape) {
  if (weight.shape_of_whole != nullptr) return weight.shape_of_whole(config, layer);
  if (weight.is_transposed_in(format) && quantization_of(config, key, shape) == nullptr)
    std::swap(shape[shape.size() - 2], shape.back());
  return shape;
}

void check_weight(const Checkpoint& checkpoint, const ModelConfig& config, const std::string& key,
                  const std::vector<std::int64_t>& wanted) {
  if (is_mxfp4(config, key)) return check_mxfp4_stack(checkpoint, *config.quantization, key, wanted);
  if (const QuantizationConfig* own = quantization_of(config, key, wanted))
    return check_quantized_weight(checkpoint, *own, key, wanted[0], wanted[1]);
  const Meta& meta = checkpoint.tensor(key).meta;
  Shape shape(wanted.begin(), wanted.end());
  if (const Shape row{1, shape[0]}; shape.size() == 1 && meta.shape == row) shape = row;  // a vector in another form
  USER_CHECK(meta.dtype != DType::u32,
             "[{}] tensor {} has codes, as mlx-lm stores them, but there are no scales of them, or no quantization in "
             "config.json",
             checkpoint.path(), key);
  USER_CHECK(meta.shape == shape, "[{}] tensor {} must have the shape {} that the config gives it, but is {}",
             checkpoint.path(), key, shape_text(shape), meta.text());
  // One-byte codes have no meaning without scales, and only a quantization_config defines which tensors are the scales.
  const bool is_number = is_floating(meta.dtype) && dtype_info(meta.dtype).block_bytes > 1;
  USER_CHECK(is_number || (is_block(meta.dtype) && shape.size() > 1),
             "[{}] tensor {} must hold floating point numbers{}, but is {}", checkpoint.path(), key,
             shape.size() > 1 ? " or blocks" : "", meta.text());
}

// The way to store the weight that this layer of the config has.
std::vector<ModelWeight>::const_iterator find_weight(const std::vector<ModelWeight>& weights, const std::string& name,
                                                     const ModelConfig& config, int layer) {
  return std::find_if(weights.begin(), weights.end(), [&](const ModelWeight& weight) {
    return weight.name == name && !weight.shape(config, std::max(layer, 0)).empty();
  });
}

// UserError that has the cause if the model has this missing weight only because the file has another tensor.
void check_not_by_switch(const ModelDefinition& model, const Checkpoint& checkpoint, const ModelConfig& config,
                         const ModelDefinition::StoredWeight& missing) {
  for (const SwitchKey& one : model.facts.switches) {
    if (one.gguf_tensor.empty() || !(config.*one.field)) continue;
    ModelConfig off = config;
    off.*one.field = false;
    USER_CHECK(model.has(missing.weight.name, off, missing.layer),
               "[{}] wanted tensor {}, but there is only {}: a model has all of these or none", checkpoint.path(),
               missing.key, one.gguf_tensor);
  }
}

}  // namespace

const ModelWeight& ModelDefinition::weight(const std::string& name) const {
  const auto found =
      std::find_if(weights.begin(), weights.end(), [&](const ModelWeight& weight) { return weight.name == name; });
  CHECK(found != weights.end(), "the model has no weight named {}", name);
  return *found;
}

bool ModelDefinition::has(const std::string& weight_name, const ModelConfig& config, int layer) const {
  return find_weight(weights, weight_name, config, layer) != weights.end();
}

const ModelWeight& ModelDefinition::weight(const std::string& name, const ModelConfig& config, int layer) const {
  const auto found = find_weight(weights, name, config, layer);
  return found == weights.end() ? weight(name) : *found;
}

std::string ModelDefinition::key(const std::string& weight_name, const ModelConfig& config, int layer) const {
  return weight(weight_name, config, layer).key(config.format, layer);
}

void ModelDefinition::visit_tensors(const ModelConfig& config, CheckpointFormat format,
                                    const std::function<void(const StoredWeight&)>& visit) const {
  for (const ModelWeight& weight : weights) {
    const std::int64_t layers = weight.is_per_layer() ? config.layer_count : 1;
    for (int layer = 0; layer < layers; ++layer) {
      const std::vector<std::int64_t> shape = weight.shape(config, layer);
      if (shape.empty()) continue;
      const std::string name = weight.key(format, layer);
      // Parts of one tensor are neighbours in the table.
      const bool is_part = weight.shape_of_whole != nullptr && &weight != weights.data();
      if (is_part && (&weight - 1)->shape_of_whole == weight.shape_of_whole) continue;
      if (!is_name_of_experts(name)) {
        visit({weight, layer, std::nullopt, name, stored_shape(weight, config, layer, name, format, shape)});
        continue;
      }
      for (std::int64_t expert = 0; expert < shape[0]; ++expert)
        visit({weight, layer, expert, name_of_expert(name, expert), {shape.begin() + 1, shape.end()}});
    }
  }
}

std::vector<std::string> ModelDefinition::tensor_names(const ModelConfig& config) const {
  std::vector<std::string> all;
  visit_tensors(config, config.format, [&](const StoredWeight& stored) {
    const QuantizationConfig* own = quantization_of(config, stored.key, stored.shape);
    if (own == nullptr) {
      all.push_back(stored.key);
      return;
    }
    for (std::string& name : quantized_names(*own, stored.key).all()) all.push_back(std::move(name));
  });
  return all;
}

std::vector<NamedMeta> ModelDefinition::tensors(const ModelConfig& config) const {
  std::vector<NamedMeta> tensors;
  visit_tensors(config, config.format, [&](const StoredWeight& stored) {
    const std::vector<std::int64_t>& shape = stored.shape;
    if (is_mxfp4(config, stored.key)) {
      for (NamedMeta& part : mxfp4_tensors(*config.quantization, stored.key, shape)) tensors.push_back(std::move(part));
    } else if (const QuantizationConfig* own = quantization_of(config, stored.key, shape)) {
      for (NamedMeta& part : quantized_tensors(*own, stored.key, shape[0], shape[1]))
        tensors.push_back(std::move(part));
    } else {
      tensors.push_back({stored.key, Meta::tensor(config.dtype, Shape(shape.begin(), shape.end()))});
    }
  });
  return tensors;
}

void ModelDefinition::check_weights(const Checkpoint& checkpoint, const ModelConfig& config) const {
  visit_tensors(config, config.format, [&](const StoredWeight& stored) {
    if (checkpoint.is_gguf() && checkpoint.find(stored.key) == nullptr)
      check_not_by_switch(*this, checkpoint, config, stored);
    check_weight(checkpoint, config, stored.key, stored.shape);
  });
}

void ModelRegistry::add(ModelDefinition definition) {
  for (const std::string& architecture : definition.architectures)
    CHECK(models_.emplace(architecture, definition).second, "architecture {} is already registered", architecture);
  for (const std::string& alias : definition.aliases) by_alias_.emplace(alias, definition.architectures[0]);
  for (const auto& alias : definition.class_aliases) by_class_.push_back({alias, definition.architectures[0]});
  by_gguf_.emplace(definition.architecture_in_gguf(), definition.architectures[0]);
}

const ModelDefinition& ModelRegistry::find(const std::string& architecture, const std::string& where) const {
  if (const auto known = models_.find(architecture); known != models_.end()) return known->second;
  for (const auto* words : {&by_alias_, &by_gguf_})
    if (const auto known = words->find(architecture); known != words->end()) return models_.at(known->second);
  check_architecture(architecture, architectures(), where);
  return models_.at(architecture);
}

const ModelDefinition& ModelRegistry::find(const Checkpoint& checkpoint) const {
  const std::string architecture = checkpoint.architecture();
  for (const auto& [alias, own] : by_class_)
    if (architecture == alias.word && checkpoint.architecture_class().starts_with(alias.class_begin))
      return models_.at(own);
  if (by_alias_.contains(architecture)) return find(architecture, checkpoint.path());
  if (!checkpoint.is_gguf()) {
    check_architecture(architecture, architectures(), checkpoint.path());
  } else if (!models_.contains(architecture)) {
    std::vector<std::string> names;
    for (const auto& [name, own] : by_gguf_) names.push_back(name);
    check_architecture(architecture, names, checkpoint.path() + " general.architecture");
  }
  return find(architecture, checkpoint.path());
}

const ModelDefinition& ModelRegistry::find_for_folder(const Checkpoint& checkpoint) const {
  const ModelDefinition& own = find(checkpoint);
  if (!checkpoint.is_gguf() || !own.architecture_of_folder) return own;
  const std::string name = own.architecture_of_folder(checkpoint.config(own.facts));
  return name.empty() ? own : models_.at(name);
}

std::vector<std::string> ModelRegistry::architectures() const {
  std::vector<std::string> names;
  for (const auto& [name, definition] : models_) names.push_back(name);
  return names;
}

}  // namespace weft
