#include "tensor/footprint.h"

#include <optional>

#include "tensor/tensor.h"

namespace weft {
namespace {

// Whether elements are addressed by strides, each with whole bytes of its own.
bool is_plain(const Meta& meta) { return meta.is_tensor() && meta.packed.empty() && has_addresses(meta.dtype); }

// Bytes from the first element to the end of the last one; nullopt if the type does not determine it.
std::optional<std::int64_t> extent(const Meta& meta) {
  if (!meta.is_tensor() || !meta.packed.empty()) return std::nullopt;
  if (meta.is_contiguous()) {
    const Dim bytes = meta.bytes();
    return bytes.is_number() ? std::optional(bytes.number()) : std::nullopt;
  }
  if (!is_plain(meta)) return std::nullopt;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < meta.rank(); ++i) {
    if (!meta.shape[i].is_number() || !meta.strides[i].is_number()) return std::nullopt;
    if (meta.shape[i].number() == 0) return 0;
    elements += (meta.shape[i].number() - 1) * meta.strides[i].number();
  }
  return bytes_of(meta.dtype, elements);
}

// The footprint of a view whose first element is at byte `offset`; unknown if that is not a whole number of elements.
Footprint footprint_at(const Meta& meta, std::int64_t offset) {
  const std::int64_t size = bytes_of(meta.dtype, 1);
  return offset % size == 0 ? footprint(meta, offset / size) : Footprint();
}

}  // namespace

Footprint footprint(const Meta& meta, const Dim& offset) {
  Footprint result{.offset = offset};
  if (!meta.is_tensor() || meta.shape.size() < 2 || is_block(meta.dtype)) return result;
  const Shape strides = meta.full_strides();
  // A row is dims 1 and up. It is contiguous if those dims are contiguous among themselves.
  Dim width = 1;
  for (std::size_t i = meta.shape.size(); i-- > 1;) {
    if (!(strides[i] == width)) return result;
    width = width * meta.shape[i];
  }
  if (!width.is_number() || !strides[0].is_number() || !offset.is_number()) return result;
  if (offset.number() + width.number() > strides[0].number()) return result;
  result.width = width.number();
  result.row_stride = strides[0].number();
  return result;
}

bool may_overlap(const Footprint& a, const Footprint& b) {
  if (a.width < 0 || b.width < 0 || a.row_stride != b.row_stride) return true;
  const std::int64_t a_begin = a.offset.number(), b_begin = b.offset.number();
  return a_begin < b_begin + b.width && b_begin < a_begin + a.width;
}

bool may_overlap(const Meta& a, const Dim& a_offset, const Meta& b, const Dim& b_offset) {
  const std::optional<std::int64_t> a_extent = extent(a), b_extent = extent(b);
  if (a_extent == 0 || b_extent == 0) return false;
  if (!a_offset.is_number() || !b_offset.is_number()) return true;
  const std::int64_t a_begin = a_offset.number(), b_begin = b_offset.number();
  if (a_extent && a_begin + *a_extent <= b_begin) return false;
  if (b_extent && b_begin + *b_extent <= a_begin) return false;
  if (!is_plain(a) || !is_plain(b) || a.dtype != b.dtype) return true;
  return may_overlap(footprint_at(a, a_begin), footprint_at(b, b_begin));
}

bool may_share_memory(const Tensor& a, const Tensor& b) {
  return a.storage == b.storage && may_overlap(a.meta, a.byte_offset, b.meta, b.byte_offset);
}

std::int64_t stored_bytes(const Tensor& tensor) {
  const std::optional<std::int64_t> known = extent(tensor.meta);
  return known ? *known : tensor.storage->bytes() - tensor.byte_offset;
}

}  // namespace weft
