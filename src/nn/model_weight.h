#pragma once

// What a model says of one of its weights: the names that checkpoints have for it, its shape, and how files differ in
// what they store.

#include <cstdint>
#include <string>
#include <vector>

#include "io/model_config.h"

namespace weft {

// A weight: its own name, its names in checkpoints with `{}` for the layer, and the shape that a config gives it. A
// shape without dims says that models of this config have no such weight.
struct ModelWeight {
  std::string name;
  std::string gguf;
  std::string hugging_face;
  std::vector<std::int64_t> (*shape)(const ModelConfig& config);
  // Of rows of heads that rotary positions turn: how many heads they are. Files differ in the order of a head's rows.
  std::int64_t (*rotated_heads)(const ModelConfig& config) = nullptr;
  // Of a vector: a Hugging Face folder holds w where the model wants 1 + w in f32; a GGUF file holds the sum.
  bool is_one_plus = false;

  bool is_per_layer() const { return gguf.find("{}") != std::string::npos; }
};

}  // namespace weft
