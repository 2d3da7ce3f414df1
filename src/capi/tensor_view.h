#pragma once

// Tensors in the caller's memory.

#include "capi/boundary.h"
#include "tensor/tensor.h"

namespace weft {

// The caller's memory as a Tensor; the memory must outlive it. Memory with gaps or in another order is copied.
// UserError, naming `what`, if the view itself is wrong: its dtype, rank, a size or stride, its alignment.
Tensor tensor_from(const weft_tensor_view& view, const std::string& what);

// Copies a tensor into the caller's memory. UserError if the view has another type or size, or if a stride of 0 makes
// elements share memory. The memory of the two must not overlap.
void copy_to(const weft_tensor_view& view, const Tensor& tensor, const std::string& what);

}  // namespace weft
