#pragma once

// Tensors in the caller's memory.

#include "capi/boundary.h"
#include "tensor/tensor.h"

namespace weft {

// The caller's memory as a Tensor, which it must outlive; memory that has gaps or another order is copied. UserError,
// naming `what`, for whatever is wrong with the view itself: its dtype, rank, a size or stride, its alignment.
Tensor tensor_from(const weft_tensor_view& view, const std::string& what);

// Writes a tensor into the caller's memory. UserError when the view is of another type or size. Their memory must not
// overlap.
void copy_to(const weft_tensor_view& view, const Tensor& tensor, const std::string& what);

}  // namespace weft
