#pragma once

// Tensors as rows: dim 0 counts the rows, all other dims are columns. What cannot be seen so is refused.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tensor/meta.h"

namespace weft {

// Why nodes are no row program. It stays within build_row_program: a reason may come up in any depth of the walk over a
// node.
struct NoRowProgram {
  std::string reason;
};
template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw NoRowProgram{fmt::format(format, std::forward<Arguments>(arguments)...)};
}

// Whether a function reads and writes values of this dtype.
bool is_row_dtype(DType dtype);
// Whether it writes them at least: what has two elements a byte is not read.
bool is_row_result_dtype(DType dtype);
// The product of all dims but the first.
std::int64_t columns_of(const Meta& meta);
// The extent of the last dim, where that is one of columns; else 1.
std::int64_t last_extent(const Meta& meta);
// One number, for all rows.
bool is_single(const Meta& meta);

// A dim of columns as memory has it: extent and stride.
struct ColumnDim {
  std::int64_t extent;
  std::int64_t stride;
  bool operator==(const ColumnDim&) const = default;
};

// Behind others, joined to the last where it continues that; nothing if it has one element.
void add_column_dim(ColumnDim dim, std::vector<ColumnDim>& dims);

// Where the elements of `from`, broadcast to `to`, lie: the stride of dim 0, and in `dims` the others, those that
// continue one another joined.
std::int64_t lie_of(const Meta& from, const Meta& to, std::vector<ColumnDim>& dims);

// Of columns that lie so, in groups of two halves of `half` columns each, those of first halves, or of second ones
// where `number` is 1. Gives where the first of them lies.
std::int64_t halve_columns(std::vector<ColumnDim>& dims, std::int64_t half, std::size_t number);

}  // namespace weft
