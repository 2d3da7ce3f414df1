#pragma once

// Model architectures: one file for each. A model states which architectures of config.json and GGUF it implements, the
// names of its weights in both and their shapes, and how its two graphs are traced:
//
//   forward   ids, positions, slots i64[s0], batch, donated KV pages of every layer -> hidden [s0, d], the pages
//   head      hidden [s0, d], rows i64[s1] -> logits [s1, vocabulary]

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "nn/builder.h"
#include "nn/model_weight.h"

namespace weft {

struct ModelDefinition {
  std::vector<std::string> architectures;
  // Further words of config.json and of GGUF files for the same layers, as where parts for images are not read.
  std::vector<std::string> aliases;
  // Words of config.json that another architecture has, too: they are of this one if the model's class begins so.
  struct ClassAlias {
    std::string word, class_begin;
  };
  std::vector<ClassAlias> class_aliases;
  // The architecture of GGUF files, if it is another word. Several definitions may state the same word, if one of them
  // has it among its architectures: that one reads the files.
  std::string gguf_architecture;
  // The architecture whose folders have what GGUF files of this one have, if it is another for this config; else "".
  std::function<std::string(const ModelConfig&)> architecture_of_folder;
  ArchitectureFacts facts;
  std::vector<ModelWeight> weights;
  std::function<Values(Builder&)> forward;
  std::function<Values(Builder&)> head;
  // For each fusion of passes/fusion/: its number of matches in one layer, if the layer's activations are quantized.
  std::map<std::string, int> fusions_per_layer;
  // The same in a recurrent layer, and in one with experts.
  std::map<std::string, int> fusions_per_recurrent_layer, fusions_per_recurrent_mixture;
  // The same in another layer with experts, and in all layers with experts what is added if all products of experts are
  // over codes.
  std::map<std::string, int> fusions_per_mixture, fusions_of_experts;
  // UserError when the config asks for a feature that this architecture's file does not implement.
  std::function<void(const ModelConfig&)> check;
  // The config.json of a tiny model of this architecture, which tests build and run.
  std::string sample_config;

  const std::string& architecture_in_gguf() const {
    return gguf_architecture.empty() ? architectures[0] : gguf_architecture;
  }
  // The weight of this name; InternalError when it is not in `weights`. Of several ways to store it, the first, or that
  // of a config.
  const ModelWeight& weight(const std::string& name) const;
  const ModelWeight& weight(const std::string& name, const ModelConfig& config, int layer) const;
  // Whether `weights` has the weight, and a layer of this config has it.
  bool has(const std::string& weight_name, const ModelConfig& config, int layer) const;
  // The weight's name in a checkpoint with this config; for experts as nn/model_weight.h says.
  std::string key(const std::string& weight_name, const ModelConfig& config, int layer) const;
  // The checkpoint's names of all tensors from which the weights of this config are read.
  std::vector<std::string> tensor_names(const ModelConfig& config) const;
  // For a folder with this config but without weight files: the tensors that check_weights requires, in the config's
  // dtype.
  std::vector<NamedMeta> tensors(const ModelConfig& config) const;
  // UserError with the first weight that is missing, has a shape other than the config's, or has a dtype that weights
  // cannot have.
  void check_weights(const Checkpoint& checkpoint, const ModelConfig& config) const;

  // Calls visit with each tensor of a checkpoint of this format that holds a weight or an expert's part of it.
  struct StoredWeight {
    const ModelWeight& weight;
    int layer;
    std::optional<std::int64_t> expert;  // if each expert has a tensor
    std::string key;
    std::vector<std::int64_t> shape;
  };
  void visit_tensors(const ModelConfig& config, CheckpointFormat format,
                     const std::function<void(const StoredWeight&)>& visit) const;
};

class ModelRegistry {
 public:
  // InternalError when an architecture is taken.
  void add(ModelDefinition definition);
  // UserError with the known architectures when there is none of this name.
  const ModelDefinition& find(const std::string& architecture, const std::string& where) const;
  // The same for a checkpoint's architecture; the error has the names of its format.
  const ModelDefinition& find(const Checkpoint& checkpoint) const;
  // The definition by which a folder with the checkpoint's model is written: its own, or that of another architecture,
  // which reads the checkpoint, too.
  const ModelDefinition& find_for_folder(const Checkpoint& checkpoint) const;
  // The words of config.json without aliases, sorted.
  std::vector<std::string> architectures() const;

 private:
  std::map<std::string, ModelDefinition> models_;
  std::map<std::string, std::string> by_gguf_;   // the architecture in models_ of a GGUF file's
  std::map<std::string, std::string> by_alias_;  // the same of an alias
  struct ClassEntry {
    ModelDefinition::ClassAlias alias;
    std::string architecture;
  };
  std::vector<ClassEntry> by_class_;
};

// One row for each file of src/models/, generated by the build.
struct ModelEntry {
  const char* name;
  void (*define)(ModelRegistry&);
};
std::span<const ModelEntry> model_table();

}  // namespace weft

// Defines the registration function of src/models/<name>.cpp.
#define MODEL(name)                                \
  namespace weft {                                 \
  void define_model_##name(ModelRegistry& models); \
  }                                                \
  void weft::define_model_##name(ModelRegistry& models)
