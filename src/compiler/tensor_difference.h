#pragma once

// How far two tensors of one type are apart.

#include <cstdint>
#include <optional>
#include <set>

#include "tensor/tensor.h"

namespace weft {

// Which KV pages are meant; nothing: all. Of other tensors it says nothing.
using KvPages = std::optional<std::set<std::int32_t>>;

struct TensorDifference {
  bool equal_bits = true;
  // Over all elements: the largest difference, infinite where a NaN or infinity meets something else, and how many
  // numbers of the dtype lie between (of integers: the difference itself).
  double largest = 0;
  double largest_ulps = 0;
};

// Of plain tensors, whatever their strides, and KV pages; other types are held against each other as bytes, which count
// as integers. InternalError when the types differ in more than strides.
TensorDifference difference_between(const Tensor& a, const Tensor& b, const KvPages& pages = std::nullopt);

// A copy in memory of its own that lies as the tensor does; what is in other pages is open, and takes no memory where
// they are many.
Tensor copy_of(const Tensor& tensor, const KvPages& pages = std::nullopt);

}  // namespace weft
