#pragma once

// A concrete tensor: a meta whose dims are numbers, and a storage. Copying a Tensor copies the handle, not the data.

#include <memory>

#include "tensor/meta.h"
#include "tensor/storage.h"
#include "tensor/tensor_view.h"

namespace weft {

struct Tensor {
  Meta meta;
  std::shared_ptr<Storage> storage;
  std::int64_t byte_offset = 0;

  // Allocates zeroed memory for a contiguous tensor meta, or for `pages` KV pages. Throws InternalError if a dim is
  // symbolic.
  static Tensor empty(const Meta& meta, std::int64_t pages = 0);
  // Copies host data; `values` has row-major elements of the dtype itself.
  static Tensor from_bytes(const Meta& meta, const void* values);

  bool defined() const { return storage != nullptr; }
  std::byte* data() const { return storage->data() + byte_offset; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
  // A view into this Tensor, valid while the Tensor exists and is not moved. The view of KV pages has one dim, the
  // pages. A plain number is a scalar of i64 or f64. The view of an undefined tensor is absent.
  TensorView view() const;
};

// Returns a contiguous copy of a strided tensor, or the same handle if the tensor is contiguous.
Tensor contiguous(const Tensor& tensor);

}  // namespace weft
