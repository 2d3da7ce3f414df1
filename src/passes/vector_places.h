#pragma once

// Alignment for kernels that read whole vectors. Such a kernel states the vector size in bytes (Kernel::vector_bytes).
// All memory that the runtime allocates begins at a multiple of it. A view may begin elsewhere; it is then copied for
// such a kernel.

#include "ir/alias.h"
#include "kernels/kernel.h"
#include "tensor/tensor.h"

namespace weft {

// Whether views of such a tensor may begin at any element. Pages, packed weights and blocks have the layout that their
// kernels need.
inline bool may_begin_anywhere(const Meta& meta) {
  return meta.is_tensor() && meta.packed.empty() && !is_block(meta.dtype);
}

// Whether a tensor may be misaligned for the kernel, for some values of the symbols.
inline bool may_begin_between_vectors(const GraphValue& value, const Kernel& kernel) {
  if (!may_begin_anywhere(value.meta)) return false;
  const DTypeInfo& dtype = dtype_info(value.meta.dtype);
  const std::int64_t elements = std::int64_t{kernel.vector_bytes} * dtype.block_elements / dtype.block_bytes;
  if (elements <= 1) return false;
  const Dim offset = storage_offset(&value);
  return !(align(offset, elements) == offset);
}

// Whether this tensor is misaligned for the kernel.
inline bool begins_between_vectors(const Tensor& tensor, const Kernel& kernel) {
  return may_begin_anywhere(tensor.meta) &&
         reinterpret_cast<std::uintptr_t>(tensor.data()) % static_cast<std::uintptr_t>(kernel.vector_bytes) != 0;
}

}  // namespace weft
