#include "tensor/same_elements.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "tensor/convert.h"
#include "tensor/float4.h"

namespace weft {

int element_width(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  CHECK(!is_block(dtype), "elements of {} have no bits of their own", info.text);
  return static_cast<int>(info.block_bytes * 8 / info.block_elements);
}

std::uint64_t element_bits(DType dtype, const std::byte* row, std::int64_t index) {
  const int width = element_width(dtype);
  if (width == 4) return load_nibble(reinterpret_cast<const std::uint8_t*>(row), index);
  std::uint64_t bits = 0;
  std::memcpy(&bits, row + index * (width / 8), static_cast<std::size_t>(width / 8));
  return bits;
}

bool is_same_element(DType dtype, const std::byte* a, const std::byte* b, std::int64_t index) {
  if (element_bits(dtype, a, index) == element_bits(dtype, b, index)) return true;
  return is_floating(dtype) && std::isnan(load_double(dtype, a, index)) && std::isnan(load_double(dtype, b, index));
}

bool are_same_elements(DType dtype, const std::byte* a, const std::byte* b, std::int64_t count) {
  const DTypeInfo& info = dtype_info(dtype);
  const std::int64_t bytes = (count + info.block_elements - 1) / info.block_elements * info.block_bytes;
  if (bytes == 0 || std::memcmp(a, b, static_cast<std::size_t>(bytes)) == 0) return true;
  if (is_block(dtype)) return false;
  for (std::int64_t i = 0; i < count; ++i)
    if (!is_same_element(dtype, a, b, i)) return false;
  return true;
}

}  // namespace weft
