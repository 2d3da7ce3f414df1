#pragma once

// Weights of GGUF files in blocks of nvfp4 that are multiplied by a factor, as llama.cpp does: tensor X.scale has one
// number for X.weight, or for a stack one for each matrix. Such a weight is read as blocks of e2m1g16
// (tensor/group_blocks.h), which have the factor.

#include <string>

#include "io/checkpoint.h"

namespace weft {

// The tensor of the factors of a weight's blocks; "" if it has none.
std::string factors_of_blocks(const Checkpoint& checkpoint, const std::string& weight);

// The type of the blocks with their factors.
Meta scaled_blocks_meta(const Checkpoint& checkpoint, const std::string& weight);
// The blocks. UserError unless there is a finite factor for each matrix, and each scale is a number of e4m3.
Tensor scaled_blocks(const Checkpoint& checkpoint, const std::string& weight);

}  // namespace weft
