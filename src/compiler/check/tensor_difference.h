#pragma once

// Measures the difference between two tensors of one type.

#include <cstdint>
#include <optional>
#include <set>

#include "tensor/tensor.h"

namespace weft {

// The KV pages to compare or copy; nullopt means all. It has no effect on other tensors.
using KvPages = std::optional<std::set<std::int32_t>>;

struct TensorDifference {
  bool is_same = true;  // each element, by the rule of tensor/same_elements.h
  // The largest difference over all elements, infinite where a NaN or infinity differs from the other value; and the
  // largest number of steps of the dtype between two elements (for integers, the difference itself).
  double largest = 0;
  double largest_ulps = 0;
};

// Compares plain tensors of any strides, and KV pages; tensors of other types are compared as bytes, each as an
// integer. InternalError when the types differ in more than strides.
TensorDifference difference_between(const Tensor& a, const Tensor& b, const KvPages& pages = std::nullopt);

// A copy in its own memory, with the tensor's layout. The contents of other pages are undefined; if they are many, they
// use no physical memory.
Tensor copy_of(const Tensor& tensor, const KvPages& pages = std::nullopt);

}  // namespace weft
