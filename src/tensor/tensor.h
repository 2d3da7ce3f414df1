#pragma once

// A concrete tensor: a meta whose dims are numbers, over a storage. Copying a Tensor copies the handle, not the data.

#include <memory>

#include "tensor/meta.h"
#include "tensor/storage.h"
#include "tensor/tensor_view.h"

namespace weft {

struct Tensor {
  Meta meta;
  std::shared_ptr<Storage> storage;
  std::int64_t byte_offset = 0;

  // Fresh zeroed memory for a contiguous tensor meta, or for KV pages when `pages` says how many. InternalError when a
  // dim is symbolic.
  static Tensor empty(const Meta& meta, std::int64_t pages = 0);
  // From host data; `values` holds row-major elements of the dtype itself.
  static Tensor from_bytes(const Meta& meta, const void* values);

  bool defined() const { return storage != nullptr; }
  std::byte* data() const { return storage->data() + byte_offset; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
  // Points into this Tensor: valid while it lives and does not move. The view of KV pages has one dim, the pages; a
  // plain number is a scalar of i64 or f64; that of an undefined tensor is absent.
  TensorView view() const;
};

// A contiguous copy of a strided tensor; the same handle when it is contiguous already.
Tensor contiguous(const Tensor& tensor);

}  // namespace weft
