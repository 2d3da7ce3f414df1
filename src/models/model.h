#pragma once

// Model architectures: one file each. A model says which architectures of config.json and GGUF it stands for, how its
// weights are called in both and what shapes they have, and how its two graphs are traced:
//
//   forward   ids, positions, slots i64[s0], batch, donated KV pages of every layer -> hidden [s0, d], the pages
//   head      hidden [s0, d], rows i64[s1] -> logits [s1, vocabulary]

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "nn/builder.h"
#include "nn/model_weight.h"

namespace weft {

struct ModelDefinition {
  std::vector<std::string> architectures;
  ArchitectureFacts facts;
  std::vector<ModelWeight> weights;
  std::function<Values(Builder&)> forward;
  std::function<Values(Builder&)> head;
  // How often each layer's graph holds what a fusion of passes/fusion/ replaces, if its activations are quantized.
  std::map<std::string, int> fusions_per_layer;
  // UserError when the config asks for what this architecture's file does not have.
  std::function<void(const ModelConfig&)> check;
  // The config.json of a tiny model of this architecture: tests make and run it.
  std::string sample_config;

  // The weight of this name; InternalError for one not in `weights`.
  const ModelWeight& weight(const std::string& name) const;
  // The checkpoint's name of it.
  std::string key(const std::string& weight_name, bool is_gguf, int layer) const;
  // The checkpoint's names of all tensors that weights of this config are read from.
  std::vector<std::string> tensor_names(const ModelConfig& config, bool is_gguf) const;
  // The tensors of a folder of this config, which has no files of weights: those that check_weights asks for, in the
  // config's dtype.
  std::vector<NamedMeta> tensors(const ModelConfig& config) const;
  // UserError that names the first weight which is missing, has another shape than the config gives it, or a dtype that
  // weights do not have.
  void check_weights(const Checkpoint& checkpoint, const ModelConfig& config) const;

 private:
  using WeightVisitor = std::function<void(const std::string& key, const std::vector<std::int64_t>& shape)>;
  void visit_weights(const ModelConfig& config, bool is_gguf, const WeightVisitor& visit) const;
};

class ModelRegistry {
 public:
  // InternalError when an architecture is taken.
  void add(ModelDefinition definition);
  // UserError naming the known ones.
  const ModelDefinition& find(const std::string& architecture, const std::string& where) const;
  std::vector<std::string> architectures() const;

 private:
  std::map<std::string, ModelDefinition> models_;
};

// One row per file of src/models/, made by the build.
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
