#include "capi/tensor_view.h"

#include <cstring>

#include "base/text.h"
#include "tensor/float4.h"

namespace weft {
namespace {

// The layout that a view describes.
struct Layout {
  Meta meta;
  bool is_empty = false;
  std::int64_t bytes = 0;  // from the first element to the end of the last; whole blocks
};

std::int64_t bytes_spanned(const Meta& meta) {
  Dim last = 0;
  const Shape strides = meta.full_strides();
  for (std::size_t i = 0; i < meta.rank(); ++i) last = last + (meta.shape[i] - 1) * strides[i];
  return bytes_of(meta.dtype, align(last + 1, dtype_info(meta.dtype).block_elements).number());
}

Layout layout_of(const weft_tensor_view& view, const std::string& what) {
  USER_CHECK(view.dtype != nullptr, "[{}] dtype must be given, but is null", what);
  const std::optional<DType> dtype = dtype_from_text(view.dtype);
  USER_CHECK(dtype.has_value(), "[{}] dtype must be one that graphs spell, such as f32, but is {}", what,
             quote(view.dtype));
  USER_CHECK(view.rank >= 0 && view.rank <= kMaxRank, "[{}] rank must be from 0 to {}, but is {}", what, kMaxRank,
             view.rank);
  Layout layout;
  Shape shape, strides;
  for (int i = 0; i < view.rank; ++i) {
    USER_CHECK(view.size[i] >= 0 && view.stride[i] >= 0,
               "[{}] sizes and strides must not be negative, but those of dim {} are {} and {}", what, i, view.size[i],
               view.stride[i]);
    shape.push_back(view.size[i]);
    strides.push_back(view.stride[i]);
    layout.is_empty = layout.is_empty || view.size[i] == 0;
  }
  try {
    layout.meta = Meta::strided(*dtype, shape, strides);
    if (!layout.is_empty) layout.bytes = bytes_spanned(layout.meta);
  } catch (const UserError& error) {
    fail_user("[{}] {}", what, error.what());
  }
  return layout;
}

void check_memory(const weft_tensor_view& view, const Meta& meta, const std::string& what) {
  USER_CHECK(view.data != nullptr, "[{}] data must be given for {}, but is null", what, meta.text());
  const DTypeInfo& info = dtype_info(meta.dtype);
  if (info.block_elements != 1) return;
  USER_CHECK(reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(info.block_bytes) == 0,
             "[{}] data must be aligned to {} bytes, the size of one {}", what, info.block_bytes, info.text);
}

// Writes dims [dim, rank) of a contiguous source, starting at its element `read`, to the position `offset` elements
// after `target`. Returns the index of the next source element.
std::int64_t write_dims(const TensorView& source, int dim, std::int64_t read, const Shape& strides, std::byte* target,
                        std::int64_t offset) {
  if (dim == source.rank) {
    const DTypeInfo& info = dtype_info(source.dtype);
    if (info.block_elements == 1) {
      std::memcpy(target + offset * info.block_bytes, source.data + read * info.block_bytes,
                  static_cast<std::size_t>(info.block_bytes));
    } else {
      store_nibble(reinterpret_cast<std::uint8_t*>(target), offset, load_nibble(source.as<std::uint8_t>(), read));
    }
    return read + 1;
  }
  const std::int64_t stride = strides[static_cast<std::size_t>(dim)].number();
  for (std::int64_t i = 0; i < source.size[dim]; ++i)
    read = write_dims(source, dim + 1, read, strides, target, offset + i * stride);
  return read;
}

}  // namespace

Tensor tensor_from(const weft_tensor_view& view, const std::string& what) {
  Layout layout = layout_of(view, what);
  if (layout.is_empty) {
    layout.meta.strides.clear();
    return Tensor::empty(layout.meta);
  }
  check_memory(view, layout.meta, what);
  Tensor tensor{.meta = layout.meta};
  tensor.storage = Storage::view_of(static_cast<std::byte*>(view.data), layout.bytes, nullptr);
  return contiguous(tensor);
}

void copy_to(const weft_tensor_view& view, const Tensor& tensor, const std::string& what) {
  const auto [meta, is_empty, bytes] = layout_of(view, what);
  const Tensor plain = contiguous(tensor);
  USER_CHECK(plain.meta.is_tensor(), "[{}] is {}, which is not a tensor", what, plain.meta.text());
  USER_CHECK(meta.dtype == plain.meta.dtype && meta.shape == plain.meta.shape, "[{}] must be {}, but is {}", what,
             plain.meta.text(), meta.text());
  if (is_empty) return;
  for (int i = 0; i < view.rank; ++i)
    USER_CHECK(view.size[i] == 1 || view.stride[i] > 0,
               "[{}] must have its own memory for each element, but dim {} has {} with stride 0", what, i,
               view.size[i]);
  check_memory(view, meta, what);
  auto* target = static_cast<std::byte*>(view.data);
  if (meta.is_contiguous()) {
    std::memcpy(target, plain.data(), static_cast<std::size_t>(bytes));
  } else {
    write_dims(plain.view(), 0, 0, meta.full_strides(), target, 0);
  }
}

}  // namespace weft
