#pragma once

// mlx-lm stores the experts of a layer as stacks: mlp.switch_mlp.up_proj.weight [experts, rows, columns], with scales
// and minimums in stacks, too. The rest of the program knows transformers' tensors of single experts,
// mlp.experts.7.up_proj.weight, or of Mixtral block_sparse_moe.experts.7.w3.weight.

#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"

namespace weft {

// Replaces each such stack by the tensors of its experts, which are views of it. Without one it returns false, and
// changes nothing.
bool split_expert_stacks(std::vector<TensorEntry>& tensors);

// The name of the stack of an expert's module: model.layers.0.mlp.switch_mlp.up_proj of
// model.layers.0.mlp.experts.7.up_proj. "" if the name is not of an expert.
std::string stack_of_expert(std::string_view module);

}  // namespace weft
