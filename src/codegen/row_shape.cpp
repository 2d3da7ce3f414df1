#include "codegen/row_shape.h"

#include <algorithm>

namespace weft {

bool is_row_dtype(DType dtype) {
  constexpr DType kDtypes[] = {DType::f32, DType::f16,    DType::bf16,       DType::i8,
                               DType::u8,  DType::f8e4m3, DType::f8e4m3fnuz, DType::f8e5m2};
  return std::find(std::begin(kDtypes), std::end(kDtypes), dtype) != std::end(kDtypes);
}

bool is_row_result_dtype(DType dtype) { return is_row_dtype(dtype) || dtype == DType::f4e2m1; }

std::int64_t columns_of(const Meta& meta) {
  if (!meta.is_tensor()) refuse("{} has no rows", meta.text());
  std::int64_t columns = 1;
  for (std::size_t i = 1; i < meta.rank(); ++i) {
    if (!meta.shape[i].is_number()) refuse("{} has columns of an unknown number", meta.text());
    columns *= meta.shape[i].number();
  }
  return columns;
}

bool is_single(const Meta& meta) {
  return std::all_of(meta.shape.begin(), meta.shape.end(), [](const Dim& dim) { return dim == Dim(1); });
}

std::int64_t last_extent(const Meta& meta) { return meta.rank() <= 1 ? 1 : meta.shape.back().number(); }

void add_column_dim(ColumnDim dim, std::vector<ColumnDim>& dims) {
  if (dim.extent == 1) return;
  if (!dims.empty() && dims.back().stride == dim.stride * dim.extent) {
    dims.back() = {dims.back().extent * dim.extent, dim.stride};
  } else {
    dims.push_back(dim);
  }
}

std::int64_t lie_of(const Meta& from, const Meta& to, std::vector<ColumnDim>& dims) {
  const Shape strides = from.full_strides();
  std::int64_t row_stride = 0;
  for (std::size_t i = 0; i < to.rank(); ++i) {
    const std::size_t missing = to.rank() - from.rank();
    const bool is_spread = i < missing || from.shape[i - missing] == Dim(1);
    const Dim stride = is_spread ? Dim(0) : strides[i - missing];
    if (!stride.is_number()) refuse("{} has strides that depend on the rows", from.text());
    if (i == 0) {
      row_stride = stride.number();
      continue;
    }
    add_column_dim({to.shape[i].number(), stride.number()}, dims);
  }
  return row_stride;
}

std::int64_t halve_columns(std::vector<ColumnDim>& dims, std::int64_t half, std::size_t number) {
  if (dims.empty()) return 0;
  const ColumnDim last = dims.back();
  if (last.extent % (2 * half) != 0) refuse("reads halves of {} among columns of extent {}", half, last.extent);
  dims.pop_back();
  add_column_dim({last.extent / (2 * half), last.stride * 2 * half}, dims);
  add_column_dim({half, last.stride}, dims);
  return static_cast<std::int64_t>(number) * half * last.stride;
}

}  // namespace weft
