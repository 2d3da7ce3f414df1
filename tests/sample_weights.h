#pragma once

// The weights of a SampleCheckpoint: their values, and how files store them.

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

// Values of few bits, so that f16 and bf16 represent them exactly; matrices are a little smaller than their fan-in
// requires.
Tensor random_weight(const std::vector<std::int64_t>& shape, std::uint64_t seed);

// Whether the weight is a vector, or a stack of the biases of experts.
bool is_vector(const std::string& name, const Tensor& tensor);

// The dtype in which a file of `dtype` stores the matrix: f32 if its rows are not whole blocks.
DType stored_dtype(const Tensor& tensor, DType dtype);

// The tensor of f32 in another dtype. Blocks that Weft does not write are random, the same for the same values.
Tensor stored_as(const Tensor& tensor, DType dtype);

// The values that the matrix has when stored in the dtype.
Tensor rounded(const Tensor& tensor, DType dtype);

}  // namespace weft
