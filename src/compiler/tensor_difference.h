#pragma once

// How far two tensors of one type are apart.

#include "tensor/tensor.h"

namespace weft {

struct TensorDifference {
  bool equal_bits = true;
  // Over all elements: the largest difference, infinite where a NaN or infinity meets something else, and how many
  // numbers of the dtype lie between (of integers: the difference itself).
  double largest = 0;
  double largest_ulps = 0;
};

// Of plain tensors, whatever their strides, and KV pages; other types are held against each other as bytes, which count
// as integers. InternalError when the types differ in more than strides.
TensorDifference difference_between(const Tensor& a, const Tensor& b);

// A copy in memory of its own that lies as the tensor does.
Tensor copy_of(const Tensor& tensor);

}  // namespace weft
