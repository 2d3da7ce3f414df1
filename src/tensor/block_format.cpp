#include "tensor/block_format.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "tensor/block_layouts.h"
#include "tensor/group_blocks.h"

namespace weft {
namespace {

// The values of iq4_nl and iq4_xs, from ggml's kvalues_iq4nl (MIT licence).
constexpr std::int8_t kNonLinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// Twice the values of e2m1.
constexpr std::int8_t kDoubledE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr std::array kFormats = {
    BlockFormat{DType::q4_0, 32, 4, -8, false, nullptr, blocks::unpack_q4_0, blocks::quantize_q4_0},
    BlockFormat{DType::q4_1, 32, 4, 0, true, nullptr, blocks::unpack_q4_1, blocks::quantize_q4_1},
    BlockFormat{DType::q8_0, 32, 8, -128, false, nullptr, blocks::unpack_q8_0, blocks::quantize_q8_0},
    BlockFormat{DType::q5_0, 32, 5, -16, false, nullptr, blocks::unpack_q5_0, nullptr},
    BlockFormat{DType::q5_1, 32, 5, 0, true, nullptr, blocks::unpack_q5_1, nullptr},
    BlockFormat{DType::iq4_nl, 32, 4, 0, false, kNonLinear, blocks::unpack_q4_0, nullptr},
    BlockFormat{DType::mxfp4, 32, 4, 0, false, kDoubledE2m1, blocks::unpack_mxfp4, nullptr},
    BlockFormat{DType::nvfp4, 16, 4, 0, false, kDoubledE2m1, blocks::unpack_nvfp4, nullptr},
    BlockFormat{DType::q2_k, 16, 2, 0, true, nullptr, blocks::unpack_q2_k, nullptr},
    BlockFormat{DType::q3_k, 16, 3, -4, false, nullptr, blocks::unpack_q3_k, nullptr},
    BlockFormat{DType::q4_k, 32, 4, 0, true, nullptr, blocks::unpack_q4_k, nullptr},
    BlockFormat{DType::q5_k, 32, 5, 0, true, nullptr, blocks::unpack_q5_k, nullptr},
    BlockFormat{DType::q6_k, 16, 6, -32, false, nullptr, blocks::unpack_q6_k, nullptr},
    BlockFormat{DType::iq4_xs, 32, 4, 0, false, kNonLinear, blocks::unpack_iq4_xs, nullptr},
    BlockFormat{DType::iq3_s, 32, 5, -16, false, nullptr, blocks::unpack_iq3_s, nullptr},
    BlockFormat{DType::iq3_xxs, 32, 7, -64, false, nullptr, blocks::unpack_iq3_xxs, nullptr},
    BlockFormat{DType::iq2_s, 16, 7, -64, false, nullptr, blocks::unpack_iq2_s, nullptr},
    BlockFormat{DType::iq2_xs, 16, 7, -64, false, nullptr, blocks::unpack_iq2_xs, nullptr},
    BlockFormat{DType::iq2_xxs, 32, 7, -64, false, nullptr, blocks::unpack_iq2_xxs, nullptr},
    BlockFormat{DType::iq1_m, 16, 5, -16, false, nullptr, blocks::unpack_iq1_m, nullptr},
    BlockFormat{DType::iq1_s, 32, 5, -16, false, nullptr, blocks::unpack_iq1_s, nullptr},
    BlockFormat{DType::tq1_0, 32, 2, -1, false, nullptr, blocks::unpack_tq1_0, nullptr},
    BlockFormat{DType::tq2_0, 32, 2, -1, false, nullptr, blocks::unpack_tq2_0, nullptr},
    BlockFormat{DType::i4g32, 32, 4, 0, true, nullptr, blocks::unpack_i4g32, nullptr},
    BlockFormat{DType::i4g64, 32, 4, 0, true, nullptr, blocks::unpack_i4g64, nullptr},
    BlockFormat{DType::i4g128, 32, 4, 0, true, nullptr, blocks::unpack_i4g128, nullptr},
    BlockFormat{DType::nf4g32, 32, 4, 0, false, nullptr, blocks::unpack_nf4g32, nullptr, kNf4Values},
    BlockFormat{DType::nf4g64, 32, 4, 0, false, nullptr, blocks::unpack_nf4g64, nullptr, kNf4Values},
    BlockFormat{DType::i8g32, 32, 8, -128, false, nullptr, blocks::unpack_i8g32, nullptr},
    BlockFormat{DType::e4m3g32, 32, 8, 0, false, nullptr, blocks::unpack_e4m3g32, nullptr, kE4m3Values.data()},
    BlockFormat{DType::e4m3g128, 32, 8, 0, false, nullptr, blocks::unpack_e4m3g128, nullptr, kE4m3Values.data()},
    BlockFormat{DType::e2m1g16, 16, 4, 0, false, kDoubledE2m1, blocks::unpack_e2m1g16, nullptr},
};

// Blocks in `count` elements.
std::int64_t block_count(DType dtype, std::int64_t count) {
  const std::int64_t elements = dtype_info(dtype).block_elements;
  CHECK(count >= 0 && count % elements == 0, "[{}] wanted whole blocks of {}, but has {} elements", dtype_text(dtype),
        elements, count);
  return count / elements;
}

int value_of(const BlockFormat& format, int code) {
  return format.codebook == nullptr ? code + format.lowest_code : format.codebook[code];
}

void check_integer_codes(const BlockFormat& format) {
  CHECK(has_integer_codes(format), "[{}] wanted a type with integer codes", dtype_text(format.dtype));
}

void dequantize_block(const BlockFormat& format, const std::byte* block, float* values) {
  BlockParts parts;
  format.unpack(block, parts);
  const std::int64_t groups = dtype_info(format.dtype).block_elements / format.group;
  for (std::int64_t g = 0; g < groups; ++g) {
    const float scale = parts.scale * parts.scales[g];
    const float minimum = format.has_minimums ? parts.minimum * parts.minimums[g] : 0.0f;
    for (std::int64_t i = g * format.group; i < (g + 1) * format.group; ++i) {
      const float code = has_integer_codes(format) ? static_cast<float>(value_of(format, parts.codes[i]))
                                                   : format.values[parts.codes[i]];
      const float product = scale * code;
      values[i] = format.has_minimums ? product + minimum : product;
    }
  }
}

}  // namespace

std::span<const BlockFormat> block_formats() { return kFormats; }

const BlockFormat& block_format(DType dtype) {
  const auto found = std::ranges::find(kFormats, dtype, &BlockFormat::dtype);
  CHECK(found != kFormats.end(), "[block_format] wanted a block type, but is {}", dtype_text(dtype));
  return *found;
}

bool has_integer_codes(DType dtype) { return is_block(dtype) && has_integer_codes(block_format(dtype)); }

CodeRange code_range(const BlockFormat& format) {
  check_integer_codes(format);
  CodeRange range{value_of(format, 0), value_of(format, 0)};
  for (int code = 1; code < 1 << format.code_bits; ++code) {
    range.least = std::min(range.least, value_of(format, code));
    range.greatest = std::max(range.greatest, value_of(format, code));
  }
  return range;
}

void unpack_block(const BlockFormat& format, const std::byte* block, std::int8_t* codes, float* scales,
                  float* minimums) {
  check_integer_codes(format);
  BlockParts parts;
  format.unpack(block, parts);
  const std::int64_t elements = dtype_info(format.dtype).block_elements;
  for (std::int64_t i = 0; i < elements; ++i) codes[i] = static_cast<std::int8_t>(value_of(format, parts.codes[i]));
  for (std::int64_t g = 0; g < elements / format.group; ++g) {
    scales[g] = parts.scale * parts.scales[g];
    if (format.has_minimums) minimums[g] = parts.minimum * parts.minimums[g];
  }
}

UnpackedRow unpack_row(const BlockFormat& format, const std::byte* blocks, std::int64_t count) {
  const DTypeInfo& info = dtype_info(format.dtype);
  const auto groups = static_cast<std::size_t>(count / format.group);
  UnpackedRow row{std::vector<std::int8_t>(static_cast<std::size_t>(count)), std::vector<float>(groups),
                  std::vector<float>(groups)};
  for (std::int64_t b = 0; b < block_count(format.dtype, count); ++b) {
    const std::int64_t first_group = b * (info.block_elements / format.group);
    unpack_block(format, blocks + b * info.block_bytes, row.codes.data() + b * info.block_elements,
                 row.scales.data() + first_group, row.minimums.data() + first_group);
  }
  return row;
}

float load_block_element(DType dtype, const std::byte* blocks, std::int64_t index) {
  const DTypeInfo& info = dtype_info(dtype);
  float values[kMaxBlockElements];
  dequantize_block(block_format(dtype), blocks + index / info.block_elements * info.block_bytes, values);
  return values[index % info.block_elements];
}

void dequantize_row(DType dtype, const std::byte* blocks, float* values, std::int64_t count) {
  const BlockFormat& format = block_format(dtype);
  const DTypeInfo& info = dtype_info(dtype);
  for (std::int64_t b = 0; b < block_count(dtype, count); ++b)
    dequantize_block(format, blocks + b * info.block_bytes, values + b * info.block_elements);
}

void quantize_row(DType dtype, const float* values, std::byte* blocks, std::int64_t count) {
  const BlockFormat& format = block_format(dtype);
  const DTypeInfo& info = dtype_info(dtype);
  CHECK(format.quantize != nullptr, "[{}] nothing is quantized to this type", dtype_text(dtype));
  for (std::int64_t i = 0; i < count; ++i)
    USER_CHECK(std::isfinite(values[i]), "[{}] only finite values can be quantized, but element {} is {}",
               dtype_text(dtype), i, values[i]);
  for (std::int64_t b = 0; b < block_count(dtype, count); ++b)
    format.quantize(values + b * info.block_elements, blocks + b * info.block_bytes);
}

}  // namespace weft
