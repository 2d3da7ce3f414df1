#include "tensor/block_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "tensor/float16.h"

namespace weft {
namespace {

// Elements of one block at most, and groups of one block at most.
constexpr std::int64_t kMaxElements = 256;
constexpr std::int64_t kMaxGroups = 16;
// Elements of a block of q4_0, q4_1 and q8_0.
constexpr std::int64_t kElements = 32;
constexpr std::int64_t kHalf = kElements / 2;

float load_f16(const std::byte* address) {
  std::uint16_t code = 0;
  std::memcpy(&code, address, sizeof code);
  return f16_to_f32(code);
}

void store_f16(std::byte* address, float value) {
  const std::uint16_t code = f32_to_f16(value);
  std::memcpy(address, &code, sizeof code);
}

// Byte j holds the code of element j (low nibble) and of element j + 16 (high nibble).
void unpack_nibbles(const std::byte* bytes, int lowest_code, std::int8_t* codes) {
  for (std::int64_t j = 0; j < kHalf; ++j) {
    codes[j] = static_cast<std::int8_t>(std::to_integer<int>(bytes[j] & std::byte{0xf}) + lowest_code);
    codes[j + kHalf] = static_cast<std::int8_t>(std::to_integer<int>(bytes[j] >> 4) + lowest_code);
  }
}

float inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }

// Codes in [0, 15] from values scaled into [0, 16). A scale whose reciprocal is infinite can leave that range.
void store_nibbles(const float* scaled, float rounding, std::byte* bytes) {
  const auto code = [&](float value) {
    return static_cast<std::uint8_t>(std::fmin(std::fmax(value + rounding, 0.0f), 15.0f));
  };
  for (std::int64_t j = 0; j < kHalf; ++j)
    bytes[j] = static_cast<std::byte>(code(scaled[j]) | code(scaled[j + kHalf]) << 4);
}

// q4_0, 18 bytes: f16 scale, 16 bytes of nibbles (code + 8). The scale is the element of largest magnitude / -8.
void unpack_q4_0(const std::byte* block, std::int8_t* codes, float* scales, float*) {
  scales[0] = load_f16(block);
  unpack_nibbles(block + 2, -8, codes);
}

void quantize_q4_0(const float* x, std::byte* block) {
  float largest = 0.0f;
  for (std::int64_t j = 0; j < kElements; ++j)
    if (std::fabs(x[j]) > std::fabs(largest)) largest = x[j];
  const float d = largest / -8.0f;
  const float id = inverse(d);
  float scaled[kElements];
  for (std::int64_t j = 0; j < kElements; ++j) scaled[j] = x[j] * id;
  store_f16(block, d);
  store_nibbles(scaled, 8.5f, block + 2);
}

// q4_1, 20 bytes: f16 scale, f16 minimum, 16 bytes of nibbles. The scale is (largest - smallest) / 15.
void unpack_q4_1(const std::byte* block, std::int8_t* codes, float* scales, float* minimums) {
  scales[0] = load_f16(block);
  minimums[0] = load_f16(block + 2);
  unpack_nibbles(block + 4, 0, codes);
}

void quantize_q4_1(const float* x, std::byte* block) {
  const auto [smallest, largest] = std::minmax_element(x, x + kElements);
  const float m = *smallest;
  const float d = (*largest - m) / 15.0f;
  const float id = inverse(d);
  float scaled[kElements];
  for (std::int64_t j = 0; j < kElements; ++j) scaled[j] = (x[j] - m) * id;
  store_f16(block, d);
  store_f16(block + 2, m);
  store_nibbles(scaled, 0.5f, block + 4);
}

// q8_0, 34 bytes: f16 scale, 32 signed bytes. The scale is the largest magnitude / 127.
void unpack_q8_0(const std::byte* block, std::int8_t* codes, float* scales, float*) {
  scales[0] = load_f16(block);
  std::memcpy(codes, block + 2, kElements);
}

void quantize_q8_0(const float* x, std::byte* block) {
  float largest = 0.0f;
  for (std::int64_t j = 0; j < kElements; ++j) largest = std::max(largest, std::fabs(x[j]));
  const float d = largest / 127.0f;
  const float id = inverse(d);
  store_f16(block, d);
  for (std::int64_t j = 0; j < kElements; ++j) {
    const float code = std::fmin(std::fmax(std::round(x[j] * id), -128.0f), 127.0f);
    block[2 + j] = static_cast<std::byte>(static_cast<std::int8_t>(code));
  }
}

constexpr std::array kFormats = {
    BlockFormat{DType::q4_0, 32, 4, -8, false, unpack_q4_0, quantize_q4_0},
    BlockFormat{DType::q4_1, 32, 4, 0, true, unpack_q4_1, quantize_q4_1},
    BlockFormat{DType::q8_0, 32, 8, -128, false, unpack_q8_0, quantize_q8_0},
};

// Blocks in `count` elements.
std::int64_t block_count(DType dtype, std::int64_t count) {
  const std::int64_t elements = dtype_info(dtype).block_elements;
  CHECK(count >= 0 && count % elements == 0, "[{}] wanted whole blocks of {}, but has {} elements", dtype_text(dtype),
        elements, count);
  return count / elements;
}

void dequantize_block(const BlockFormat& format, const std::byte* block, float* values) {
  std::int8_t codes[kMaxElements];
  float scales[kMaxGroups], minimums[kMaxGroups];
  format.unpack(block, codes, scales, minimums);
  const std::int64_t groups = dtype_info(format.dtype).block_elements / format.group;
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t i = g * format.group; i < (g + 1) * format.group; ++i) {
      const float product = scales[g] * static_cast<float>(codes[i]);
      values[i] = format.has_minimums ? product + minimums[g] : product;
    }
}

}  // namespace

std::span<const BlockFormat> block_formats() { return kFormats; }

const BlockFormat& block_format(DType dtype) {
  const auto found = std::ranges::find(kFormats, dtype, &BlockFormat::dtype);
  CHECK(found != kFormats.end(), "[block_format] wanted a block type, but is {}", dtype_text(dtype));
  return *found;
}

UnpackedRow unpack_row(const BlockFormat& format, const std::byte* blocks, std::int64_t count) {
  const DTypeInfo& info = dtype_info(format.dtype);
  const auto groups = static_cast<std::size_t>(count / format.group);
  UnpackedRow row{std::vector<std::int8_t>(static_cast<std::size_t>(count)), std::vector<float>(groups),
                  std::vector<float>(groups)};
  for (std::int64_t b = 0; b < block_count(format.dtype, count); ++b) {
    const std::int64_t first_group = b * (info.block_elements / format.group);
    format.unpack(blocks + b * info.block_bytes, row.codes.data() + b * info.block_elements,
                  row.scales.data() + first_group, row.minimums.data() + first_group);
  }
  return row;
}

float load_block_element(DType dtype, const std::byte* blocks, std::int64_t index) {
  const DTypeInfo& info = dtype_info(dtype);
  float values[kMaxElements];
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
  for (std::int64_t i = 0; i < count; ++i)
    USER_CHECK(std::isfinite(values[i]), "[{}] only finite values can be quantized, but element {} is {}",
               dtype_text(dtype), i, values[i]);
  for (std::int64_t b = 0; b < block_count(dtype, count); ++b)
    format.quantize(values + b * info.block_elements, blocks + b * info.block_bytes);
}

}  // namespace weft
