#include "tensor/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "tensor/float16.h"
#include "tensor/float4.h"

namespace weft {
namespace {

constexpr std::int64_t kHalf = kBlockElements / 2;

float load_f16(const std::byte* address) {
  std::uint16_t code = 0;
  std::memcpy(&code, address, sizeof code);
  return f16_to_f32(code);
}

void store_f16(std::byte* address, float value) {
  const std::uint16_t code = f32_to_f16(value);
  std::memcpy(address, &code, sizeof code);
}

std::uint8_t load_code(const std::byte* codes, std::int64_t index) {
  const auto byte = static_cast<std::uint8_t>(codes[index % kHalf]);
  return static_cast<std::uint8_t>(index < kHalf ? byte & 0xf : byte >> 4);
}

float element(DType dtype, const std::byte* block, std::int64_t index) {
  const float d = load_f16(block);
  switch (dtype) {
    case DType::q4_0:
      return d * static_cast<float>(load_code(block + 2, index) - 8);
    case DType::q4_1:
      return d * static_cast<float>(load_code(block + 4, index)) + load_f16(block + 2);
    default:
      return d * static_cast<float>(static_cast<std::int8_t>(block[2 + index]));
  }
}

void check_blocks(DType dtype, std::int64_t count) {
  CHECK(is_block(dtype), "[blocks] wanted a block type, but is {}", dtype_text(dtype));
  CHECK(count >= 0 && count % kBlockElements == 0, "[blocks] wanted whole blocks of {}, but got {} elements",
        kBlockElements, count);
}

float inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }

// Stores codes in [0, 15] of values scaled to [0, 16). The clamp is for scales with an infinite reciprocal, which can
// leave that range.
void store_codes(const float* scaled, float rounding, std::byte* codes) {
  const auto code = [&](float value) {
    return static_cast<std::uint8_t>(std::fmin(std::fmax(value + rounding, 0.0f), 15.0f));
  };
  for (std::int64_t j = 0; j < kHalf; ++j)
    codes[j] = static_cast<std::byte>(code(scaled[j]) | code(scaled[j + kHalf]) << 4);
}

void quantize_q4_0(const float* x, std::byte* block) {
  float largest = 0.0f;
  for (std::int64_t j = 0; j < kBlockElements; ++j)
    if (std::fabs(x[j]) > std::fabs(largest)) largest = x[j];
  const float d = largest / -8.0f;
  const float id = inverse(d);
  float scaled[kBlockElements];
  for (std::int64_t j = 0; j < kBlockElements; ++j) scaled[j] = x[j] * id;
  store_f16(block, d);
  store_codes(scaled, 8.5f, block + 2);
}

void quantize_q4_1(const float* x, std::byte* block) {
  const auto [smallest, largest] = std::minmax_element(x, x + kBlockElements);
  const float m = *smallest;
  const float d = (*largest - m) / 15.0f;
  const float id = inverse(d);
  float scaled[kBlockElements];
  for (std::int64_t j = 0; j < kBlockElements; ++j) scaled[j] = (x[j] - m) * id;
  store_f16(block, d);
  store_f16(block + 2, m);
  store_codes(scaled, 0.5f, block + 4);
}

void quantize_q8_0(const float* x, std::byte* block) {
  float largest = 0.0f;
  for (std::int64_t j = 0; j < kBlockElements; ++j) largest = std::max(largest, std::fabs(x[j]));
  const float d = largest / 127.0f;
  const float id = inverse(d);
  store_f16(block, d);
  for (std::int64_t j = 0; j < kBlockElements; ++j) {
    const float code = std::fmin(std::fmax(std::round(x[j] * id), -128.0f), 127.0f);
    block[2 + j] = static_cast<std::byte>(static_cast<std::int8_t>(code));
  }
}

}  // namespace

float load_block_element(DType dtype, const std::byte* blocks, std::int64_t index) {
  check_blocks(dtype, 0);
  return element(dtype, blocks + index / kBlockElements * dtype_info(dtype).block_bytes, index % kBlockElements);
}

void dequantize_row(DType dtype, const std::byte* blocks, float* values, std::int64_t count) {
  check_blocks(dtype, count);
  const std::int64_t block_bytes = dtype_info(dtype).block_bytes;
  for (std::int64_t b = 0; b < count / kBlockElements; ++b)
    for (std::int64_t j = 0; j < kBlockElements; ++j)
      values[b * kBlockElements + j] = element(dtype, blocks + b * block_bytes, j);
}

void quantize_row(DType dtype, const float* values, std::byte* blocks, std::int64_t count) {
  check_blocks(dtype, count);
  const std::int64_t block_bytes = dtype_info(dtype).block_bytes;
  for (std::int64_t i = 0; i < count; ++i)
    USER_CHECK(std::isfinite(values[i]), "[{}] only finite values can be quantized, but element {} is {}",
               dtype_text(dtype), i, values[i]);
  for (std::int64_t b = 0; b < count / kBlockElements; ++b) {
    const float* x = values + b * kBlockElements;
    std::byte* block = blocks + b * block_bytes;
    if (dtype == DType::q4_0) quantize_q4_0(x, block);
    if (dtype == DType::q4_1) quantize_q4_1(x, block);
    if (dtype == DType::q8_0) quantize_q8_0(x, block);
  }
}

}  // namespace weft
