#pragma once

// Kernels of a device read and write vectors of 16 bytes. All memory that the runtime hands out begins at a multiple of
// those; a view of it may not, and is then copied for such a kernel.

#include "ir/alias.h"

namespace weft {

// Whether a tensor may begin at no such place, for some values of the symbols.
inline bool may_begin_between_vectors(const GraphValue& value) {
  constexpr std::int64_t kVectorBytes = 16;
  if (!value.meta.is_tensor() || !value.meta.packed.empty() || is_block(value.meta.dtype)) return false;
  const DTypeInfo& dtype = dtype_info(value.meta.dtype);
  const Dim offset = storage_offset(&value);
  return !(align(offset, kVectorBytes * dtype.block_elements / dtype.block_bytes) == offset);
}

}  // namespace weft
