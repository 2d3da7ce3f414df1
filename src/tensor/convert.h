#pragma once

// Loads and stores elements of any dtype as numbers, and converts rows between dtypes. These conversions define `cast`.
//
//   to float     round to nearest even, once; f8, f4: see float8.h, float4.h
//   to integer   floats truncate toward zero and saturate, NaN gives 0; integers wrap, as in C
//   to bool      1 for everything but zero (NaN counts as true)
//   from blocks  d * q + m in f32 (blocks.h); to a block type: UserError

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace weft {

// Element `index` of a row of `dtype`. Rows of packed 4-bit types start at a byte. load_float rounds values that f32
// cannot represent. Stores into block types throw UserError.
float load_float(DType dtype, const std::byte* row, std::int64_t index);
double load_double(DType dtype, const std::byte* row, std::int64_t index);
void store_float(DType dtype, std::byte* row, std::int64_t index, float value);
void store_double(DType dtype, std::byte* row, std::int64_t index, double value);
// Integers and bool are exact; floating types are converted as by cast.
std::int64_t load_integer(DType dtype, const std::byte* row, std::int64_t index);
void store_integer(DType dtype, std::byte* row, std::int64_t index, std::int64_t value);

// Converts `count` elements of one contiguous row to another. The rows must not overlap.
void convert_row(DType from, const std::byte* source, DType to, std::byte* target, std::int64_t count);

}  // namespace weft
