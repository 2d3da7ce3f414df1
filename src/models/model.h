#pragma once

// Model architectures: one file each. A model says which architectures of config.json and GGUF it stands for, how its
// weights are called in both, and how its two graphs are traced:
//
//   forward   ids, positions, slots i64[s0], batch, donated KV pages of every layer -> hidden [s0, d], the pages
//   head      hidden [s0, d], rows i64[s1] -> logits [s1, vocabulary]

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "nn/builder.h"

namespace weft {

// A weight's own name and its names in checkpoints, `{}` for the layer.
struct WeightName {
  std::string name;
  std::string gguf;
  std::string hugging_face;
};

struct ModelDefinition {
  std::vector<std::string> architectures;
  std::vector<WeightName> weights;
  std::function<Values(Builder&)> forward;
  std::function<Values(Builder&)> head;
  // UserError when the config asks for what this architecture's file does not have.
  std::function<void(const ModelConfig&)> check;

  // The checkpoint's name of a weight; InternalError for a name not in `weights`.
  std::string key(const std::string& weight_name, bool is_gguf, int layer) const;
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
