#pragma once

// Kernels of a device read and write vectors of 16 bytes. All memory that the runtime hands out begins at a multiple of
// those; a view of it may not, and is then copied for such a kernel.

#include "ir/alias.h"

namespace weft {

inline constexpr std::int64_t kVectorBytes = 16;

// Whether views of such a tensor may begin anywhere; pages, packed weights and blocks lie as their kernels want them.
inline bool may_begin_anywhere(const Meta& meta) {
  return meta.is_tensor() && meta.packed.empty() && !is_block(meta.dtype);
}

// Whether a tensor may begin at no such place, for some values of the symbols.
inline bool may_begin_between_vectors(const GraphValue& value) {
  if (!may_begin_anywhere(value.meta)) return false;
  const DTypeInfo& dtype = dtype_info(value.meta.dtype);
  const Dim offset = storage_offset(&value);
  return !(align(offset, kVectorBytes * dtype.block_elements / dtype.block_bytes) == offset);
}

}  // namespace weft
