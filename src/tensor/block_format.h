#pragma once

// Block formats: ggml's, as GGUF files store them, and those of group_blocks.h. Each has one row in block_format.cpp. A
// block holds codes, and each group of consecutive elements has a scale and, in some formats, a minimum.
//
//   value = scale * code             without minimums
//   value = scale * code + minimum   with minimums (a product, then a sum, each rounded to f32)
//
// Sizes of a block are in dtype.def. The scale of a group is a number of the block times a number of the group, and so
// is its minimum. Both products are exact in f32 or have the rounding of ggml's own dequantizers or a folder's, so that
// values are equal bit for bit. A code is an integer, but for NF4 and e4m3, whose codes are indices of real numbers:
// such weights have no products over codes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dtype.h"

namespace weft {

// Elements and groups of one block at most.
inline constexpr int kMaxBlockElements = 256;
inline constexpr int kMaxBlockGroups = 16;

// What a block stores. A format of one scale for the block has 1 for each group.
struct BlockParts {
  float scale;
  float minimum;
  float scales[kMaxBlockGroups];
  float minimums[kMaxBlockGroups];
  std::uint8_t codes[kMaxBlockElements];  // as stored: without sign, before the codebook
};

struct BlockFormat {
  DType dtype;
  int group;        // consecutive elements with one scale; 16 or 32, divides the block's elements
  int code_bits;    // stored codes are in [0, 2^code_bits)
  int lowest_code;  // the value of the stored code 0, if there is no codebook
  bool has_minimums;
  const std::int8_t* codebook;  // the values of the 16 stored codes; null if a value is the stored code + lowest_code
  // Writes all codes of one block, its scale, and a scale for each of its groups; in formats with minimums also those.
  void (*unpack)(const std::byte* block, BlockParts& parts);
  // As ggml's reference quantizer does for one block of finite values; null for formats that are only read.
  void (*quantize)(const float* values, std::byte* block);
  const float* values = nullptr;  // those of all stored codes, where they are not integers
};

std::span<const BlockFormat> block_formats();
// InternalError when `dtype` is not a block type.
const BlockFormat& block_format(DType dtype);
inline bool has_integer_codes(const BlockFormat& format) { return format.values == nullptr; }
// Whether weights of this type have products over codes: block types with integer codes.
bool has_integer_codes(DType dtype);

// The least and the greatest value of a code. This and the functions that give codes are for formats with integer codes
// (InternalError otherwise).
struct CodeRange {
  int least;
  int greatest;
};
CodeRange code_range(const BlockFormat& format);

// Writes the values of all codes of one block, and the scale of each group; the minimum, too, if the format has them.
void unpack_block(const BlockFormat& format, const std::byte* block, std::int8_t* codes, float* scales,
                  float* minimums);

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
// Values must be finite (UserError otherwise). InternalError for a format that is only read.
void quantize_row(DType dtype, const float* values, std::byte* blocks, std::int64_t count);

}  // namespace weft
