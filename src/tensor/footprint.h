#pragma once

// The part of a storage that a view covers, to tell whether two views can meet.

#include "tensor/meta.h"

namespace weft {

struct Tensor;

// Every row is `width` elements from `offset`, rows `row_stride` apart. Unknown (width -1) where a view is too
// irregular to say; then it counts as the whole storage.
struct Footprint {
  Dim offset = 0;  // elements from the start of the storage, within one row
  std::int64_t width = -1;
  std::int64_t row_stride = -1;
};

Footprint footprint(const Meta& meta, const Dim& offset);

// Of two views of one storage with elements of one size. Columns of one matrix that do not meet are known to be apart.
bool may_overlap(const Footprint& a, const Footprint& b);

// Of two views of one storage that begin at these bytes of it. Yes, unless their types and places say that they are
// apart: one behind the other, or other columns of rows that are equally far apart.
bool may_overlap(const Meta& a, const Dim& a_offset, const Meta& b, const Dim& b_offset);
// Of two tensors, whatever their storages.
bool may_share_memory(const Tensor& a, const Tensor& b);

// What a copy of the tensor as it lies takes: from its first element to behind its last; of pages, batches and packed
// weights to the end of their storage.
std::int64_t stored_bytes(const Tensor& tensor);

}  // namespace weft
