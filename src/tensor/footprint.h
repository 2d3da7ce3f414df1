#pragma once

// The part of a storage that a view covers, to decide whether two views can overlap.

#include "tensor/meta.h"

namespace weft {

struct Tensor;

// Each row has `width` elements from `offset`, and rows are `row_stride` apart. The width is -1 if the view is too
// irregular; it then counts as the whole storage.
struct Footprint {
  Dim offset = 0;  // elements from the start of the storage, within one row
  std::int64_t width = -1;
  std::int64_t row_stride = -1;
};

Footprint footprint(const Meta& meta, const Dim& offset);

// For two views of one storage with elements of the same size. Different columns of one matrix are recognized as
// disjoint.
bool may_overlap(const Footprint& a, const Footprint& b);

// For two views of one storage that begin at these byte offsets. Returns true unless types and offsets prove that they
// are disjoint: one is after the other, or they are different columns of rows with the same distance.
bool may_overlap(const Meta& a, const Dim& a_offset, const Meta& b, const Dim& b_offset);
// For two tensors of any storages.
bool may_share_memory(const Tensor& a, const Tensor& b);

// The bytes of a copy that keeps the tensor's layout: from its first element to the end of its last one. For pages,
// batches and packed weights: to the end of their storage.
std::int64_t stored_bytes(const Tensor& tensor);

}  // namespace weft
