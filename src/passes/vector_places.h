#pragma once

// Kernels that read vectors say of how many bytes (Kernel::vector_bytes). All memory that the runtime hands out begins
// at a multiple of those; a view of it may not, and is then copied for such a kernel.

#include "ir/alias.h"
#include "kernels/kernel.h"
#include "tensor/tensor.h"

namespace weft {

// Whether views of such a tensor may begin anywhere; pages, packed weights and blocks lie as their kernels want them.
inline bool may_begin_anywhere(const Meta& meta) {
  return meta.is_tensor() && meta.packed.empty() && !is_block(meta.dtype);
}

// Whether a tensor may begin where the kernel cannot read it, for some values of the symbols.
inline bool may_begin_between_vectors(const GraphValue& value, const Kernel& kernel) {
  if (!may_begin_anywhere(value.meta)) return false;
  const DTypeInfo& dtype = dtype_info(value.meta.dtype);
  const std::int64_t elements = std::int64_t{kernel.vector_bytes} * dtype.block_elements / dtype.block_bytes;
  if (elements <= 1) return false;
  const Dim offset = storage_offset(&value);
  return !(align(offset, elements) == offset);
}

// Whether this one does.
inline bool begins_between_vectors(const Tensor& tensor, const Kernel& kernel) {
  return may_begin_anywhere(tensor.meta) &&
         reinterpret_cast<std::uintptr_t>(tensor.data()) % static_cast<std::uintptr_t>(kernel.vector_bytes) != 0;
}

}  // namespace weft
