#pragma once

// Makes tensors to time a call on: of its types, with contents on which no kernel is slow or fails.

#include <optional>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

// Operands of these types (dims must be numbers; strides are those of the types); nullopt gives an undefined tensor.
// Integers are valid row indices for all tables of the call; rows of matrices repeat. KV pages and batches contain one
// sequence of `rows` tokens.
std::vector<Tensor> tune_inputs(const std::vector<std::optional<Meta>>& operands, std::int64_t rows);

}  // namespace weft
