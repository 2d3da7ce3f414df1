#pragma once

// The tensors of a folder with a model's weights, and the weights of the checkpoint from which each is made.

#include <optional>
#include <string>
#include <vector>

#include "models/model.h"

namespace weft {

// How the rows of a tensor are made of those of several weights.
//   rows         those of each weight after those of the one before it
//   latents      for each head the rows of its key, then those of its value, of the stacks of all keys and all values
//   by_key_head  for each key head of a gated delta net its query, its key, its values, and the gates of these
enum class RowJoin : std::uint8_t { rows, latents, by_key_head };

// Rows of value heads, or columns, that GGUF files have in another order: the first value heads of all key heads come
// first. The heads are after `before` rows, and have `width` rows each.
struct TiledHeads {
  std::int64_t before = 0, width = 1;
  bool are_columns = false;
};

struct FolderTensor {
  std::string name;                 // "model.layers.0.mlp.up_proj.weight"
  std::vector<std::string> keys;    // in the checkpoint: one, or those of `join`
  std::vector<std::int64_t> shape;  // of a linear layer, as the model multiplies by it
  RowJoin join = RowJoin::rows;
  std::optional<std::int64_t> part;  // of a stack for which the folder has a tensor for each part
  bool is_head = false;
  bool is_linear = false;           // the weight of a linear layer that a format may quantize
  bool is_transposed = false;       // a matrix that the checkpoint stores transposed
  bool becomes_transposed = false;  // the folder stores the matrix transposed, unless it is quantized
  std::int64_t rotated_heads = 0;   // the number of heads whose rows must be reordered, or 0
  bool is_grouped = false;          // the folder has the rows of each key head one after another
  bool is_less_one = false;         // the folder stores the values of the checkpoint minus one
  bool is_logarithm = false;        // the folder stores the logarithm of minus the values
  std::optional<TiledHeads> tiled_heads = std::nullopt;

  const std::string& key() const { return keys[0]; }
};

// `folder` is the config of the folder. For a checkpoint that is a folder it is `config`, and tensors keep the names
// that the checkpoint's files have. UserError if a weight of the checkpoint belongs to no tensor of the folder.
std::vector<FolderTensor> folder_tensors(const Checkpoint& checkpoint, const ModelDefinition& model,
                                         const ModelConfig& config, const ModelConfig& folder);

}  // namespace weft
