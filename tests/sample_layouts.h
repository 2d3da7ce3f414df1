#pragma once

// Weights in the layouts of GGUF files, where these differ from a folder's. All tensors are f32.

#include <string>
#include <utility>
#include <vector>

#include "io/model_config.h"
#include "tensor/tensor.h"

namespace weft {

// A matrix transposed, or a stack with each matrix transposed.
Tensor transposed(const Tensor& stack);

// Rows of a stack, or elements of rows, that alternate between gate and up: those of gate, then those of up.
Tensor halves_from_pairs(const Tensor& tensor);

// A folder's tensor has for each head the rows of its key, then those of its value. A GGUF file has the transposed keys
// and the values of all heads.
struct LatentParts {
  Tensor keys, values;
};
LatentParts latent_parts(const Tensor& rows, const ModelConfig& config);
Tensor rows_of_latent_parts(const LatentParts& parts, const ModelConfig& config);

// Rows of heads whose halves are rotated together, permuted for a file that rotates neighbours.
Tensor neighbours_from_halves(const Tensor& tensor, int heads);

// Rows, or elements, that a folder has for each key head: its queries, its key and its value. A GGUF file has all
// queries, then all keys, then all values.
Tensor ungrouped_rows(const Tensor& tensor, const ModelConfig& config);

// The rows of one matrix and then those of the other; or elements of vectors.
Tensor joined_rows(const Tensor& first, const Tensor& second);

Tensor one_plus(const Tensor& tensor);

// Weights by their names in a folder, where each stack has the name of its first expert: with the stacks and the names
// of transformers' modules.
using NamedWeights = std::vector<std::pair<std::string, Tensor>>;
NamedWeights weights_in_modules(const NamedWeights& weights);

}  // namespace weft
