#pragma once

// Weights of recurrent layers in the layouts of GGUF files, where these differ from a folder's. All tensors are f32.

#include <string>

#include "tests/sample_layouts.h"

namespace weft {

// The tensors that a GGUF file has for the weight `name` of the model's table, by their names. Files of early
// converters (`is_early`) have the joined projections of gated delta nets as folders have them.
NamedWeights recurrent_weights_in_gguf(const std::string& name, const std::string& gguf_name, const Tensor& tensor,
                                       const ModelConfig& config, bool is_early);

// Whether it is a weight of a recurrent layer.
bool is_recurrent_weight(const std::string& name);

}  // namespace weft
