#pragma once

// ggml's block formats: 32 elements with one scale, as GGUF files store them. `d`, `m` are f16. In the 4-bit formats
// byte j holds element j (low nibble) and element j + 16 (high nibble).
//
//   q4_0  18 bytes: d, 16 bytes of codes   value = d * (code - 8)
//   q4_1  20 bytes: d, m, 16 bytes         value = d * code + m     (a product, then a sum)
//   q8_0  34 bytes: d, 32 signed bytes     value = d * code

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace weft {

inline constexpr std::int64_t kBlockElements = 32;

// Element `index` of a row of blocks. InternalError when `dtype` is not a block type.
float load_block_element(DType dtype, const std::byte* blocks, std::int64_t index);
// `count` is a multiple of 32 (InternalError otherwise).
void dequantize_row(DType dtype, const std::byte* blocks, float* values, std::int64_t count);
// Quantizes like ggml's reference quantizers: q4_0 scales by the element of largest magnitude / -8, q4_1 by (largest -
// smallest) / 15, q8_0 by the largest magnitude / 127. `count` must be a multiple of 32 and the values finite, or
// UserError is thrown.
void quantize_row(DType dtype, const float* values, std::byte* blocks, std::int64_t count);

}  // namespace weft
