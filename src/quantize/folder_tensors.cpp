#include "quantize/folder_tensors.h"

#include <map>
#include <set>

#include "base/error.h"
#include "io/quantization_config.h"

namespace weft {
namespace {

constexpr const char *kLatentKeys = "attn_k_b", *kLatentValues = "attn_v_b";
constexpr const char* kJoinedDelta = "ssm_qkvz";

// Where a weight of a gated delta net has the value heads that GGUF files may have in another order.
std::optional<TiledHeads> tiled_heads_of(const std::string& weight, const RecurrentConfig& c) {
  if (weight == "ssm_qkv" || weight == "ssm_conv1d") return TiledHeads{2 * c.keys_width(), c.value_dim};
  if (weight == "ssm_gate") return TiledHeads{0, c.value_dim};
  if (weight == "ssm_out") return TiledHeads{0, c.value_dim, /*are_columns=*/true};
  for (const char* of_heads : {"ssm_beta", "ssm_alpha", "ssm_dt", "ssm_a"})
    if (weight == of_heads) return TiledHeads{};
  return std::nullopt;
}

class FolderTensors {
 public:
  FolderTensors(const Checkpoint& checkpoint, const ModelDefinition& model, const ModelConfig& config,
                const ModelConfig& folder)
      : checkpoint_(checkpoint), model_(model), config_(config), folder_(folder) {
    quantizable_.embedding = model.facts.embedding;
    find_stored_modules();
  }

  std::vector<FolderTensor> all() {
    std::vector<FolderTensor> tensors;
    std::set<std::string> used;
    model_.visit_tensors(folder_, CheckpointFormat::hugging_face, [&](const ModelDefinition::StoredWeight& stored) {
      tensors.push_back(tensor_of(stored));
      used.insert(tensors.back().keys.begin(), tensors.back().keys.end());
    });
    model_.visit_tensors(config_, config_.format, [&](const ModelDefinition::StoredWeight& stored) {
      USER_CHECK(used.contains(stored.key),
                 "[{}] tensor {} belongs to no tensor of a folder of {}: wanted the folder that it was made from",
                 checkpoint_.path(), stored.key, model_.architectures[0]);
    });
    return tensors;
  }

 private:
  bool is_gguf() const { return config_.format == CheckpointFormat::gguf; }

  FolderTensor tensor_of(const ModelDefinition::StoredWeight& stored) const {
    const ModelWeight& weight = stored.weight;
    FolderTensor tensor;
    tensor.name = is_gguf() ? name_of_new(stored.key) : name_of_known(stored.key);
    tensor.shape = stored.shape;
    tensor.is_head = weight.name == "output";
    find_keys(stored, tensor);
    tensor.is_linear = tensor.shape.size() == 2 && quantizable_.quantizes(stored.key);
    if (tensor.is_linear && weight.is_transposed_in(CheckpointFormat::hugging_face)) {
      tensor.shape = weight.shape(folder_, stored.layer);
      tensor.is_transposed = weight.is_transposed_in(config_.format);
      tensor.becomes_transposed = true;
    }
    if (config_.rope.pairing != model_.facts.pairing_in_folders && weight.rotated_heads != nullptr)
      tensor.rotated_heads = weight.rotated_heads(config_);
    tensor.is_grouped =
        model_.facts.groups_heads_in_folders && !config_.groups_heads && weight.name.starts_with("attn_qkv");
    const auto changes = [&](bool (ModelWeight::*is_in)(CheckpointFormat) const) {
      return (weight.*is_in)(CheckpointFormat::hugging_face) && !(weight.*is_in)(config_.format);
    };
    tensor.is_less_one = changes(&ModelWeight::is_less_one_in);
    tensor.is_logarithm = changes(&ModelWeight::is_logarithm_in);
    if (config_.recurrent && config_.recurrent->has_tiled_values && !folder_.recurrent->has_tiled_values)
      tensor.tiled_heads = tiled_heads_of(weight.name, *config_.recurrent);
    return tensor;
  }

  void find_keys(const ModelDefinition::StoredWeight& stored, FolderTensor& tensor) const {
    const ModelWeight& weight = stored.weight;
    const int layer = stored.layer;
    if (!is_gguf()) {
      tensor.keys = {stored.key};
    } else if (weight.name == kLatentKeys && folder_.latents->is_joined && !config_.latents->is_joined) {
      tensor.keys = {model_.key(kLatentKeys, config_, layer), model_.key(kLatentValues, config_, layer)};
      tensor.join = RowJoin::latents;
    } else if (weight.name == kJoinedDelta && !config_.recurrent->is_joined) {
      tensor.keys = {model_.key("ssm_qkv", config_, layer), model_.key("ssm_gate", config_, layer)};
      tensor.join = RowJoin::by_key_head;
    } else if (model_.has(weight.name, config_, layer)) {
      tensor.keys = {model_.key(weight.name, config_, layer)};
      if (is_name_of_experts(tensor.key())) {
        tensor.keys[0] = name_of_expert(tensor.key(), stored.expert.value());
      } else {
        tensor.part = stored.expert;
      }
    } else {  // the weights that have the same name in folders
      for (const ModelWeight& other : model_.weights)
        if (other.hugging_face == weight.hugging_face && !other.shape(config_, layer).empty())
          tensor.keys.push_back(other.key(config_.format, layer));
    }
    USER_CHECK(!tensor.keys.empty(),
               "[{}] has no weights for tensor {} of a folder: wanted the folder that it was made from",
               checkpoint_.path(), stored.key);
  }

  // The head may have another name in folders than that by which it is read.
  std::string name_of_new(const std::string& name) const {
    constexpr std::string_view kHead = "lm_head.";
    return name.starts_with(kHead) ? std::string(model_.facts.head) + name.substr(kHead.size() - 1) : name;
  }

  // The name that the checkpoint's file has for the tensor.
  std::string name_of_known(const std::string& name) const {
    const std::size_t end = name.rfind('.');
    const auto known = stored_modules_.find(name.substr(0, end));
    return known == stored_modules_.end() ? name : known->second + name.substr(end);
  }

  // The modules that the files name otherwise than the model's table does.
  void find_stored_modules() {
    for (const TensorEntry& entry : checkpoint_.tensors()) {
      const std::size_t end = entry.name.rfind('.');
      if (entry.stored_name.empty() || end == std::string::npos) continue;
      const std::string_view last = std::string_view(entry.name).substr(end);
      if (!entry.stored_name.ends_with(last)) continue;
      stored_modules_[entry.name.substr(0, end)] = entry.stored_name.substr(0, entry.stored_name.size() - last.size());
    }
  }

  const Checkpoint& checkpoint_;
  const ModelDefinition& model_;
  const ModelConfig &config_, &folder_;
  std::map<std::string, std::string> stored_modules_;
  QuantizationConfig quantizable_;  // that reaches all linear layers but the head
};

}  // namespace

std::vector<FolderTensor> folder_tensors(const Checkpoint& checkpoint, const ModelDefinition& model,
                                         const ModelConfig& config, const ModelConfig& folder) {
  return FolderTensors(checkpoint, model, config, folder).all();
}

}  // namespace weft
