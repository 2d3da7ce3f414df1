#pragma once

// Strided tensors: properties of their layout, and plain loops over their elements.

#include <cstdint>

#include "tensor/convert.h"
#include "tensor/meta.h"
#include "tensor/tensor_view.h"

namespace weft {

// Whether the elements of each row are adjacent and rows do not overlap: contiguous tensors, and matrices whose rows
// are further apart.
inline bool has_plain_rows(const Meta& meta) {
  if (meta.is_contiguous()) return true;
  return meta.rank() == 2 && meta.strides[1] == Dim(1) && meta.strides[0].is_number() && meta.shape[1].is_number() &&
         meta.strides[0].number() >= meta.shape[1].number();
}

// Calls body(index) for every multi-index of the sizes, row-major; `index` has kMaxRank entries.
template <class Body>
void for_each_index(const std::int64_t* size, int rank, Body&& body) {
  std::int64_t index[kMaxRank] = {};
  for (int i = 0; i < rank; ++i)
    if (size[i] == 0) return;
  for (;;) {
    body(static_cast<const std::int64_t*>(index));
    int axis = rank - 1;
    for (; axis >= 0; --axis) {
      if (++index[axis] < size[axis]) break;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// The offset, in elements, of a multi-index that may have more axes than the tensor. Leading axes are ignored, and axes
// of extent 1 are broadcast.
inline std::int64_t element_at(const TensorView& view, const std::int64_t* index, int rank) {
  std::int64_t element = 0;
  for (int i = 0; i < view.rank; ++i)
    if (view.size[i] != 1) element += index[rank - view.rank + i] * view.stride[i];
  return element;
}

}  // namespace weft
