#pragma once

// When two results count as the same. `weft verify`, `weft bisect`, `--check-replay`, also of `weft graph run`, and the
// device check use this rule:
//
//   Two elements are the same if their bits are equal, or if both are NaN.
//
// The sign and the payload of a NaN depend on the order of an instruction's operands, which kernels and compilers
// choose freely, so only "is NaN" is part of a result. A canonical NaN would cost each kernel an instruction per
// element. Zeros of different signs differ.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace weft {

// The stored bits of element `index`; rows of packed 4-bit types start at a byte. InternalError for block types.
std::uint64_t element_bits(DType dtype, const std::byte* row, std::int64_t index);

// Bits of one element: 4 for packed 4-bit types. InternalError for block types.
int element_width(DType dtype);

bool is_same_element(DType dtype, const std::byte* a, const std::byte* b, std::int64_t index);

// Whether all elements of two contiguous rows are the same. Block types are compared by their bits alone.
bool are_same_elements(DType dtype, const std::byte* a, const std::byte* b, std::int64_t count);

}  // namespace weft
