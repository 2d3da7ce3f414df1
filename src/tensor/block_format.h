#pragma once

// ggml's block formats, as GGUF files store them: one row each in block_format.cpp. Every format is affine: a block
// holds integer codes, and each group of consecutive elements has a scale and, in some formats, a minimum.
//
//   value = scale * code             without minimums
//   value = scale * code + minimum   with minimums (a product, then a sum, each rounded to f32)
//
// Sizes of a block are in dtype.def. What a file stores in more steps than this (scales of scales) is unpacked to these
// numbers with the roundings of ggml's own dequantizers, so that values are equal bit for bit.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dtype.h"

namespace weft {

struct BlockFormat {
  DType dtype;
  int group;      // consecutive elements with one scale; divides the block's elements
  int code_bits;  // codes are in [lowest_code, lowest_code + 2^code_bits)
  int lowest_code;
  bool has_minimums;
  // Writes all codes of one block and a scale (and a minimum, if the format has them) for each of its groups.
  void (*unpack)(const std::byte* block, std::int8_t* codes, float* scales, float* minimums);
  // As ggml's reference quantizer does for one block of finite values.
  void (*quantize)(const float* values, std::byte* block);
};

std::span<const BlockFormat> block_formats();
// InternalError when `dtype` is not a block type.
const BlockFormat& block_format(DType dtype);

// A row of blocks as codes with a scale and a minimum (0 in formats without minimums) for each group.
struct UnpackedRow {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<float> minimums;
};
// `count` elements must fill whole blocks, here and below (InternalError otherwise).
UnpackedRow unpack_row(const BlockFormat& format, const std::byte* blocks, std::int64_t count);

// Element `index` of a row of blocks. InternalError when `dtype` is not a block type.
float load_block_element(DType dtype, const std::byte* blocks, std::int64_t index);
void dequantize_row(DType dtype, const std::byte* blocks, float* values, std::int64_t count);
// Values must be finite (UserError otherwise).
void quantize_row(DType dtype, const float* values, std::byte* blocks, std::int64_t count);

}  // namespace weft
