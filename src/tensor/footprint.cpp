#include "tensor/footprint.h"

namespace weft {

Footprint footprint(const Meta& meta, const Dim& offset) {
  Footprint result{.offset = offset};
  if (!meta.is_tensor() || meta.shape.size() < 2 || is_block(meta.dtype)) return result;
  const Shape strides = meta.full_strides();
  // A row is dims 1.. ; it is one run of elements when those dims are contiguous among themselves.
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

}  // namespace weft
