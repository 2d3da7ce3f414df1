#include "compiler/check/tensor_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tensor/convert.h"
#include "tensor/footprint.h"
#include "tensor/tensor_view.h"

namespace weft {
namespace {

// The index of a floating-point number among all numbers of its dtype in ascending order. The two zeros have adjacent
// indices.
double ordinal(const std::byte* element, std::int64_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<std::size_t>(bytes));
  const std::uint64_t sign = std::uint64_t{1} << (bytes * 8 - 1);
  return (bits & sign) != 0 ? -1.0 - static_cast<double>(bits & ~sign) : static_cast<double>(bits);
}

void compare_elements(TensorDifference& difference, DType dtype, const std::byte* a, const std::byte* b,
                      std::int64_t count) {
  const std::int64_t size = bytes_of(dtype, 1);
  const bool is_float = is_floating(dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte *x = a + i * size, *y = b + i * size;
    if (std::memcmp(x, y, static_cast<std::size_t>(size)) == 0) continue;
    const double between = load_double(dtype, a, i) - load_double(dtype, b, i);
    const double apart = std::isfinite(between) ? std::abs(between) : std::numeric_limits<double>::infinity();
    difference.largest = std::max(difference.largest, apart);
    difference.largest_ulps =
        std::max(difference.largest_ulps, is_float ? std::abs(ordinal(x, size) - ordinal(y, size)) : apart);
  }
}

struct Bytes {
  std::int64_t begin = 0, count = 0;
};

// The byte ranges of the tensor that are compared: for KV with known pages only those pages, otherwise everything.
std::vector<Bytes> bytes_meant(const Tensor& tensor, const KvPages& pages) {
  const std::int64_t all = stored_bytes(tensor);
  if (tensor.meta.kind != MetaKind::kv || !pages) return {{0, all}};
  const std::int64_t page_bytes = bytes_of(tensor.meta.kv.dtype, kv_page_elements(tensor.meta.kv));
  std::vector<Bytes> meant;
  for (const std::int32_t page : *pages)
    if (page >= 0 && (page + 1) * page_bytes <= all) meant.push_back({page * page_bytes, page_bytes});
  return meant;
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
  DType dtype = a.meta.kind == MetaKind::kv ? a.meta.kv.dtype : a.meta.dtype;
  if ((a.meta.kind != MetaKind::kv && !is_plain) || is_block(dtype) || bytes_of(dtype, 2) != 2 * bytes_of(dtype, 1))
    dtype = DType::u8;
  for (const auto& [begin, count] : bytes_meant(left, pages)) {
    const std::byte *one = left.data() + begin, *other = right.data() + begin;
    if (count == 0 || std::memcmp(one, other, static_cast<std::size_t>(count)) == 0) continue;
    difference.equal_bits = false;
    compare_elements(difference, dtype, one, other, count / bytes_of(dtype, 1));
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
