#pragma once

// Elements of any dtype as numbers, and rows from one dtype to another: the values that `cast` means.
//
//   to float     round to nearest even, once; f8, f4: see float8.h, float4.h
//   to integer   floats truncate toward zero and saturate, NaN gives 0; integers wrap, as in C
//   to bool      1 for everything but zero (NaN counts as true)
//   from blocks  d * q + m in f32 (blocks.h); to a block type: UserError

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace weft {

// Element `index` of a row of `dtype`; rows of packed 4-bit types start at a byte. load_float rounds what f32 cannot
// hold. Stores into block types are UserErrors.
float load_float(DType dtype, const std::byte* row, std::int64_t index);
double load_double(DType dtype, const std::byte* row, std::int64_t index);
void store_float(DType dtype, std::byte* row, std::int64_t index, float value);
void store_double(DType dtype, std::byte* row, std::int64_t index, double value);
// Integers and bool exactly; floating types as by cast.
std::int64_t load_integer(DType dtype, const std::byte* row, std::int64_t index);
void store_integer(DType dtype, std::byte* row, std::int64_t index, std::int64_t value);

// `count` elements from one contiguous row to another. The rows must not overlap.
void convert_row(DType from, const std::byte* source, DType to, std::byte* target, std::int64_t count);

}  // namespace weft
