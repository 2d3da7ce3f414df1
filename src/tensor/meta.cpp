#include "tensor/meta.h"

#include "base/error.h"
#include "tensor/kv_pages.h"

namespace weft {
namespace {

void check_shape(DType dtype, const Shape& shape) {
  USER_CHECK(shape.size() <= kMaxRank, "[{}] a tensor has at most {} dims, but is given {}", dtype_text(dtype),
             kMaxRank, shape_text(shape));
  for (const Dim& dim : shape)
    USER_CHECK(!dim.is_number() || dim.number() >= 0, "[{}] dims must not be negative, but are {}", dtype_text(dtype),
               shape_text(shape));
  const std::int64_t block = dtype_info(dtype).block_elements;
  if (block == 1 || (!shape.empty() && !shape.back().is_number())) return;
  USER_CHECK(!shape.empty() && shape.back().number() % block == 0,
             "[{}] the last dim must be a multiple of {}, but the shape is {}", dtype_text(dtype), block,
             shape_text(shape));
}

std::string braces(const Shape& strides) {
  std::string text = shape_text(strides);
  text.front() = '{';
  text.back() = '}';
  return text;
}

}  // namespace

Meta Meta::tensor(DType dtype, Shape shape) {
  check_shape(dtype, shape);
  Meta meta;
  meta.dtype = dtype;
  meta.shape = std::move(shape);
  return meta;
}

Meta Meta::strided(DType dtype, Shape shape, Shape strides) {
  Meta meta = tensor(dtype, std::move(shape));
  USER_CHECK(strides.size() == meta.shape.size(), "[{}] wanted one stride for each dim of {}, but got {}",
             dtype_text(dtype), shape_text(meta.shape), braces(strides));
  const Shape contiguous = contiguous_strides(meta.shape);
  for (std::size_t i = 0; i < strides.size(); ++i) {
    USER_CHECK(!strides[i].is_number() || strides[i].number() >= 0, "[{}] strides must not be negative, but are {}",
               dtype_text(dtype), braces(strides));
    if (meta.shape[i] == Dim(1)) strides[i] = contiguous[i];
  }
  if (strides == contiguous) return meta;
  USER_CHECK(!is_block(dtype), "[{}] is stored row-major in blocks and takes no strides, but got {}", dtype_text(dtype),
             braces(strides));
  meta.strides = std::move(strides);
  return meta;
}

Meta Meta::pages(KvLayout layout) {
  USER_CHECK(
      kv_type_fits(layout),
      "[kv cache] pages of {} want heads of a multiple of {} columns and no other block type than q8_0, but heads "
      "have {}; --kv-cache-dtype f16 takes all",
      dtype_text(layout.dtype), dtype_info(layout.dtype).block_elements, layout.head_dim);
  Meta meta;
  meta.kind = MetaKind::kv;
  meta.kv = layout;
  return meta;
}

Meta Meta::batch() {
  Meta meta;
  meta.kind = MetaKind::batch;
  return meta;
}

Shape Meta::full_strides() const { return strides.empty() ? contiguous_strides(shape) : strides; }

Dim Meta::bytes() const {
  CHECK(is_tensor() && packed.empty(), "[meta] wanted a plain tensor, but is {}", text());
  const DTypeInfo& info = dtype_info(dtype);
  Dim elements = element_count(shape);
  if (!strides.empty() && !(elements == Dim(0))) {
    elements = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) elements = elements + (shape[i] - Dim(1)) * strides[i];
  }
  return floordiv(elements, info.block_elements) * Dim(info.block_bytes);
}

std::string Meta::text() const {
  switch (kind) {
    case MetaKind::kv:
      return fmt::format("kv[{}, block={}, heads={}, head_dim={}{}{}]", dtype_text(kv.dtype), kv.block, kv.heads,
                         kv.head_dim, kv.keys_are_values ? ", values=keys" : "",
                         kv.state_rows == 0 ? "" : fmt::format(", state_rows={}", kv.state_rows));
    case MetaKind::batch:
      return "batch";
    case MetaKind::integer:
      return "int";
    case MetaKind::real:
      return "float";
    case MetaKind::tensor:
      break;
  }
  std::string text = std::string(dtype_text(dtype)) + shape_text(shape);
  if (!strides.empty()) text += braces(strides);
  if (!packed.empty()) text += " packed=" + packed;
  return text;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size(), Dim(1));
  for (std::size_t i = shape.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * shape[i - 1];
  return strides;
}

}  // namespace weft
