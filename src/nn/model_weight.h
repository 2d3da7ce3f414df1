#pragma once

// A model's description of one of its weights: its names in checkpoints, its shape, and how the stored data differs
// between file formats.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "io/model_config.h"

namespace weft {

// The name of a weight in a layer still has a `{}` if each expert has a tensor. Returns the name of one of these.
inline bool is_name_of_experts(const std::string& key) { return key.find("{}") != std::string::npos; }
inline std::string name_of_expert(std::string key, std::int64_t expert) {
  return key.replace(key.find("{}"), 2, std::to_string(expert));
}

// A weight: its name in the model, its names in checkpoints with `{}` for the layer, and its shape in a layer of a
// config. A shape without dims means that the layer, or models of this config, do not have the weight. The bias of the
// linear layer or norm X is named "X.bias". A stack of weights [experts, rows, columns] may be stored as a tensor for
// each expert: then a further `{}` in the name is the expert. The same holds of stacks that have other parts, as the
// projections of residual streams. If files may store a weight in several ways, the table has a row with its name for
// each, of which one at most has dims in a config.
struct ModelWeight {
  std::string name;
  std::string gguf;
  std::string hugging_face;
  std::vector<std::int64_t> (*shape)(const ModelConfig& config, int layer);
  // For a weight whose rows belong to heads with rotary positions: the number of heads. The order of the rows in a head
  // differs between file formats.
  std::int64_t (*rotated_heads)(const ModelConfig& config) = nullptr;
  // For a vector that the model uses as 1 + w in f32: the formats whose files store w. The others store the sum.
  std::vector<CheckpointFormat> less_one_in = {};
  // For a vector that the model uses as -exp(w) in f32: the formats whose files store w. The others store the result.
  std::vector<CheckpointFormat> logarithm_in = {};
  // For other vectors: the model uses them in f32.
  bool is_exact = false;
  // For matrices: the formats whose files store them transposed. Quantized ones are never transposed.
  std::vector<CheckpointFormat> transposed_in = {};
  // The shape of the tensor, if the weight is a part of it.
  std::vector<std::int64_t> (*shape_of_whole)(const ModelConfig& config, int layer) = nullptr;

  const std::string& name_in(CheckpointFormat format) const {
    return format == CheckpointFormat::gguf ? gguf : hugging_face;
  }
  bool is_less_one_in(CheckpointFormat format) const {
    return std::find(less_one_in.begin(), less_one_in.end(), format) != less_one_in.end();
  }
  bool is_logarithm_in(CheckpointFormat format) const {
    return std::find(logarithm_in.begin(), logarithm_in.end(), format) != logarithm_in.end();
  }
  bool is_transposed_in(CheckpointFormat format) const {
    return std::find(transposed_in.begin(), transposed_in.end(), format) != transposed_in.end();
  }
  bool is_per_layer() const { return gguf.find("{}") != std::string::npos; }
  // The name in a layer; for experts that have a tensor each, with a {} left.
  std::string key(CheckpointFormat format, int layer) const {
    std::string name = name_in(format);
    const std::size_t at = is_per_layer() ? name.find("{}") : std::string::npos;
    return at == std::string::npos ? name : name.replace(at, 2, std::to_string(layer));
  }
};

}  // namespace weft
