#pragma once

// Weights of f32 in the layouts of folders, where a checkpoint has another.

#include <cstdint>
#include <vector>

#include "io/model_config.h"
#include "quantize/folder_tensors.h"
#include "tensor/tensor.h"

namespace weft {

// The transpose of a matrix.
Tensor transpose_of(const Tensor& matrix);
// Reorders the rows of heads whose rotation pairs adjacent rows, so that it pairs the halves of the rotated part.
Tensor halves_from_neighbours(const Tensor& tensor, std::int64_t heads, std::int64_t rotary_dim);
// Reorders the rows of all queries, then those of all keys, then those of all values, so that for each key head those
// of its queries, of its key and of its value follow one another.
Tensor grouped_by_key_head(const Tensor& tensor, const ModelConfig& config);
// For each head its rows of keys, from a stack [heads, rank, dim] of f32, and those of values, from [heads, dim, rank].
Tensor joined_latents(const Tensor& keys, const Tensor& values);
// The rows of each matrix, or the elements of each vector, after those of the one before it.
Tensor joined_rows(const std::vector<Tensor>& parts);
// The rows of a gated delta net's queries, keys and values, and of its gates, sorted by key head.
Tensor joined_by_key_head(const Tensor& mixed, const Tensor& gates, const RecurrentConfig& config);
// Reorders value heads, of which the first ones of all key heads come first, so that those of each key head follow one
// another.
Tensor untiled(const Tensor& tensor, const TiledHeads& heads, const RecurrentConfig& config);
// The same elements in another shape: dims of 1 come or go, or groups of a vector are joined.
Tensor with_shape(const Tensor& tensor, const std::vector<std::int64_t>& shape);

}  // namespace weft
