#include "compiler/check/tensor_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tensor/convert.h"
#include "tensor/footprint.h"
#include "tensor/kv_pages.h"
#include "tensor/same_elements.h"
#include "tensor/tensor_view.h"

namespace weft {
namespace {

// The index of a floating-point number among all numbers of its dtype in ascending order. The two zeros have adjacent
// indices.
double ordinal(DType dtype, const std::byte* row, std::int64_t index) {
  const std::uint64_t bits = element_bits(dtype, row, index);
  const std::uint64_t sign = std::uint64_t{1} << (element_width(dtype) - 1);
  return (bits & sign) != 0 ? -1.0 - static_cast<double>(bits & ~sign) : static_cast<double>(bits);
}

void compare_elements(TensorDifference& difference, DType dtype, const std::byte* a, const std::byte* b,
                      std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_same_element(dtype, a, b, i)) continue;
    difference.is_same = false;
    const double between = load_double(dtype, a, i) - load_double(dtype, b, i);
    const double apart = std::isfinite(between) ? std::abs(between) : std::numeric_limits<double>::infinity();
    difference.largest = std::max(difference.largest, apart);
    difference.largest_ulps = std::max(
        difference.largest_ulps, is_floating(dtype) ? std::abs(ordinal(dtype, a, i) - ordinal(dtype, b, i)) : apart);
  }
}

struct Bytes {
  std::int64_t begin = 0, count = 0;
};

// The byte ranges of the tensor that are compared: for KV with known pages only those pages, otherwise everything.
std::vector<Bytes> bytes_meant(const Tensor& tensor, const KvPages& pages) {
  const std::int64_t all = stored_bytes(tensor);
  if (tensor.meta.kind != MetaKind::kv || !pages) return {{0, all}};
  const std::int64_t page_bytes = kv_page_bytes(tensor.meta.kv);
  std::vector<Bytes> meant;
  for (const std::int32_t page : *pages)
    if (page >= 0 && (page + 1) * page_bytes <= all) meant.push_back({page * page_bytes, page_bytes});
  return meant;
}

// The dtype of the elements that are compared. Blocks and packed weights are compared as bytes.
DType compared_as(const Meta& meta) {
  if (meta.kind == MetaKind::kv) return meta.kv.dtype;
  return meta.is_tensor() && meta.packed.empty() && !is_block(meta.dtype) ? meta.dtype : DType::u8;
}

}  // namespace

TensorDifference difference_between(const Tensor& a, const Tensor& b, const KvPages& pages) {
  CHECK(a.meta.kind == b.meta.kind && a.meta.dtype == b.meta.dtype && a.meta.shape == b.meta.shape &&
            a.meta.kv == b.meta.kv && a.meta.packed == b.meta.packed,
        "{} cannot be held against {}", a.meta.text(), b.meta.text());
  TensorDifference difference;
  const bool is_plain = a.meta.is_tensor() && a.meta.packed.empty();
  const Tensor left = is_plain ? contiguous(a) : a, right = is_plain ? contiguous(b) : b;
  CHECK(stored_bytes(left) == stored_bytes(right), "{} bytes cannot be held against {}", stored_bytes(left),
        stored_bytes(right));
  const DType dtype = compared_as(a.meta);
  for (const auto& [begin, count] : bytes_meant(left, pages)) {
    const std::byte *one = left.data() + begin, *other = right.data() + begin;
    const std::int64_t elements = count / dtype_info(dtype).block_bytes * dtype_info(dtype).block_elements;
    if (!are_same_elements(dtype, one, other, elements)) compare_elements(difference, dtype, one, other, elements);
  }
  return difference;
}

Tensor copy_of(const Tensor& tensor, const KvPages& pages) {
  const auto page_size = tensor.meta.kind == MetaKind::kv ? Storage::PageSize::small : Storage::PageSize::any;
  Tensor copy{tensor.meta, Storage::allocate(std::max<std::int64_t>(stored_bytes(tensor), 1), page_size), 0};
  for (const auto& [begin, count] : bytes_meant(tensor, pages))
    if (count > 0) std::memcpy(copy.data() + begin, tensor.data() + begin, static_cast<std::size_t>(count));
  return copy;
}

}  // namespace weft
