#include <algorithm>
#include <cmath>

#include "tensor/block_layouts.h"

namespace weft::blocks {
namespace {

constexpr std::int64_t kQuantized = 32;
constexpr std::int64_t kHalfOfBlock = kQuantized / 2;

void store_f16(std::byte* address, float value) {
  const std::uint16_t code = f32_to_f16(value);
  std::memcpy(address, &code, sizeof code);
}

float inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }

// Codes in [0, 15] from values scaled into [0, 16). A scale whose reciprocal is infinite can leave that range.
void store_nibbles(const float* scaled, float rounding, std::byte* bytes) {
  const auto code = [&](float value) {
    return static_cast<std::uint8_t>(std::fmin(std::fmax(value + rounding, 0.0f), 15.0f));
  };
  for (std::int64_t j = 0; j < kHalfOfBlock; ++j)
    bytes[j] = static_cast<std::byte>(code(scaled[j]) | code(scaled[j + kHalfOfBlock]) << 4);
}

}  // namespace

// The scale is the element of largest magnitude / -8.
void quantize_q4_0(const float* x, std::byte* block) {
  float largest = 0.0f;
  for (std::int64_t j = 0; j < kQuantized; ++j)
    if (std::fabs(x[j]) > std::fabs(largest)) largest = x[j];
  const float d = largest / -8.0f;
  const float id = inverse(d);
  float scaled[kQuantized];
  for (std::int64_t j = 0; j < kQuantized; ++j) scaled[j] = x[j] * id;
  store_f16(block, d);
  store_nibbles(scaled, 8.5f, block + 2);
}

// The scale is (largest - smallest) / 15.
void quantize_q4_1(const float* x, std::byte* block) {
  const auto [smallest, largest] = std::minmax_element(x, x + kQuantized);
  const float m = *smallest;
  const float d = (*largest - m) / 15.0f;
  const float id = inverse(d);
  float scaled[kQuantized];
  for (std::int64_t j = 0; j < kQuantized; ++j) scaled[j] = (x[j] - m) * id;
  store_f16(block, d);
  store_f16(block + 2, m);
  store_nibbles(scaled, 0.5f, block + 4);
}

// The scale is the largest magnitude / 127.
void quantize_q8_0(const float* x, std::byte* block) {
  float largest = 0.0f;
  for (std::int64_t j = 0; j < kQuantized; ++j) largest = std::max(largest, std::fabs(x[j]));
  const float d = largest / 127.0f;
  const float id = inverse(d);
  store_f16(block, d);
  for (std::int64_t j = 0; j < kQuantized; ++j) {
    const float code = std::fmin(std::fmax(std::round(x[j] * id), -128.0f), 127.0f);
    block[2 + j] = static_cast<std::byte>(static_cast<std::int8_t>(code));
  }
}

}  // namespace weft::blocks
