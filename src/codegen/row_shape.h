#pragma once

// Tensors as rows: dim 0 counts the rows, all other dims are columns. Tensors that do not fit this form are refused.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tensor/meta.h"

namespace weft {

// Thrown with the reason why nodes cannot be a row program, at any depth of the walk over a node. build_row_program
// catches it.
struct NoRowProgram {
  std::string reason;
};
template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw NoRowProgram{fmt::format(format, std::forward<Arguments>(arguments)...)};
}

// Whether a function reads and writes values of this dtype.
bool is_row_dtype(DType dtype);
// Whether a function writes values of this dtype. Dtypes with two elements in a byte are written but not read.
bool is_row_result_dtype(DType dtype);
// The product of all dims but the first.
std::int64_t columns_of(const Meta& meta);
// The extent of the last dim if that is a dim of columns; otherwise 1.
std::int64_t last_extent(const Meta& meta);
// Whether the tensor is one number, for all rows.
bool is_single(const Meta& meta);

// The extent and stride of a dim of columns in memory.
struct ColumnDim {
  std::int64_t extent;
  std::int64_t stride;
  bool operator==(const ColumnDim&) const = default;
};

// Appends a dim, or merges it into the last one if it continues that. A dim of one element adds nothing.
void add_column_dim(ColumnDim dim, std::vector<ColumnDim>& dims);

// Describes where the elements of `from`, broadcast to `to`, are in memory: returns the stride of dim 0 and writes the
// other dims to `dims`, merged where one continues another.
std::int64_t lie_of(const Meta& from, const Meta& to, std::vector<ColumnDim>& dims);

// Reduces `dims` to one half of each group. A group has two halves of `half` columns each; `number` 0 selects the first
// halves and 1 the second. Returns the offset of the first selected column. Refuses if the last dim does not divide
// into such groups.
std::int64_t halve_columns(std::vector<ColumnDim>& dims, std::int64_t half, std::size_t number);

}  // namespace weft
