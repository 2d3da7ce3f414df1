#pragma once

// Tensors to time a call on: of its types, with contents that no kernel is slow or fails on.

#include <optional>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

// Operands of these types (dims are numbers; strided where the types are), nullopt undefined. Integers are row numbers
// that all tables of the call have; rows of matrices repeat. KV pages and batches are of one sequence of `rows` tokens.
std::vector<Tensor> tune_inputs(const std::vector<std::optional<Meta>>& operands, std::int64_t rows);

}  // namespace weft
