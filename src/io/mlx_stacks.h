#pragma once

// mlx-lm stores the weights of a layer's experts, and of the heads of latent attention, as stacks: [experts, rows,
// columns], with scales and minimums in stacks, too. The rest of the program knows a tensor for each part:
//
//   mlp.switch_mlp.up_proj.weight                 mlp.experts.7.up_proj.weight
//   block_sparse_moe.switch_mlp.up_proj.weight    block_sparse_moe.experts.7.w3.weight, as Mixtral in transformers
//   mlp.experts.up_proj.weight, of gpt-oss        mlp.experts.7.up_proj.weight
//   experts.switch_glu.up_proj.weight             experts.7.up_proj.weight
//   self_attn.embed_q.weight                      self_attn.embed_q.7.weight

#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"

namespace weft {

// Replaces each such stack by the tensors of its parts, which are views of it. Without one it returns false, and
// changes nothing.
bool split_stacks(std::vector<TensorEntry>& tensors);

// The name of the parts of a module that is a stack, model.layers.0.mlp.experts.{}.up_proj of
// model.layers.0.mlp.switch_mlp.up_proj. "" if the name is not of a stack.
std::string parts_of_stack(const std::string& module);
// The same name by that of one part, model.layers.0.mlp.experts.7.up_proj. "" if the name is not of a part.
std::string parts_with(std::string_view part);

}  // namespace weft
