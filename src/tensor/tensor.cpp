#include "tensor/tensor.h"

#include <cstring>

#include "base/error.h"
#include "tensor/float4.h"
#include "tensor/kv_pages.h"

namespace weft {
namespace {

std::int64_t storage_bytes(const Meta& meta, std::int64_t pages) {
  switch (meta.kind) {
    case MetaKind::kv:
      return (Dim(kv_page_bytes(meta.kv)) * Dim(pages)).number();
    case MetaKind::integer:
    case MetaKind::real:
      return 8;
    case MetaKind::batch:
      CHECK(false, "[tensor] a batch has no storage of its own");
    case MetaKind::tensor:
      break;
  }
  return meta.bytes().number();
}

// Copies dims [dim, rank) of the source to consecutive elements from `written` on; returns the next free index.
std::int64_t copy_dims(const TensorView& source, int dim, std::int64_t offset, std::byte* target,
                       std::int64_t written) {
  if (dim == source.rank) {
    const DTypeInfo& info = dtype_info(source.dtype);
    if (info.block_elements == 1) {
      const auto bytes = static_cast<std::size_t>(info.block_bytes);
      std::memcpy(target + written * info.block_bytes, source.data + offset * info.block_bytes, bytes);
    } else {
      const std::uint8_t code = load_nibble(source.as<std::uint8_t>(), offset);
      store_nibble(reinterpret_cast<std::uint8_t*>(target), written, code);
    }
    return written + 1;
  }
  for (std::int64_t i = 0; i < source.size[dim]; ++i)
    written = copy_dims(source, dim + 1, offset + i * source.stride[dim], target, written);
  return written;
}

}  // namespace

Tensor Tensor::empty(const Meta& meta, std::int64_t pages) {
  Tensor tensor;
  const auto page_size = meta.kind == MetaKind::kv ? Storage::PageSize::small : Storage::PageSize::any;
  tensor.storage = Storage::allocate(storage_bytes(meta, pages), page_size);
  tensor.meta = meta;
  return tensor;
}

Tensor Tensor::from_bytes(const Meta& meta, const void* values) {
  CHECK(meta.is_tensor(), "[tensor] wanted a tensor, but is {}", meta.text());
  Tensor tensor = empty(meta);
  if (tensor.storage->bytes() > 0)
    std::memcpy(tensor.data(), values, static_cast<std::size_t>(tensor.storage->bytes()));
  return tensor;
}

TensorView Tensor::view() const {
  TensorView view;
  if (!defined()) return view;
  view.data = data();
  view.kind = meta.kind;
  view.meta = &meta;
  switch (meta.kind) {
    case MetaKind::kv:
      view.dtype = meta.kv.dtype;
      view.rank = 1;
      view.size[0] = (storage->bytes() - byte_offset) / kv_page_bytes(meta.kv);
      view.stride[0] = kv_page_elements(meta.kv);
      return view;
    case MetaKind::batch:
      return view;
    case MetaKind::integer:
    case MetaKind::real:
      view.dtype = meta.kind == MetaKind::integer ? DType::i64 : DType::f64;
      return view;
    case MetaKind::tensor:
      break;
  }
  CHECK(meta.rank() <= kMaxRank, "[tensor] wanted at most {} dims, but is {}", kMaxRank, meta.text());
  view.dtype = meta.dtype;
  view.rank = static_cast<std::uint8_t>(meta.rank());
  const Shape strides = meta.full_strides();
  for (std::size_t i = 0; i < meta.rank(); ++i) {
    view.size[i] = meta.shape[i].number();
    view.stride[i] = strides[i].number();
  }
  return view;
}

Tensor contiguous(const Tensor& tensor) {
  if (!tensor.meta.is_tensor() || tensor.meta.is_contiguous()) return tensor;
  Meta meta = tensor.meta;
  meta.strides.clear();
  Tensor copy = Tensor::empty(meta);
  copy_dims(tensor.view(), 0, 0, copy.data(), 0);
  return copy;
}

}  // namespace weft
