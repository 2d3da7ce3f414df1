#include "tensor/block_layouts.h"

#include <cmath>

namespace weft::blocks {
namespace {

constexpr int kHalf = 16;

void unpack_scale(float scale, BlockParts& parts) {
  parts.scale = scale;
  parts.scales[0] = 1.0f;
}

void unpack_minimum(float minimum, BlockParts& parts) {
  parts.minimum = minimum;
  parts.minimums[0] = 1.0f;
}

// Byte j holds the code of element j (low nibble) and of element j + 16 (high nibble).
void unpack_nibbles(const std::byte* bytes, std::uint8_t* codes) {
  for (int j = 0; j < kHalf; ++j) {
    codes[j] = static_cast<std::uint8_t>(byte_at(bytes, j) & 15);
    codes[j + kHalf] = static_cast<std::uint8_t>(byte_at(bytes, j) >> 4);
  }
}

// Bit j of 32 is the fifth bit of element j.
void add_fifth_bits(const std::byte* bits, std::uint8_t* codes) {
  const std::uint32_t all = thirty_two_bits(bits);
  for (int j = 0; j < 2 * kHalf; ++j) codes[j] = static_cast<std::uint8_t>(codes[j] | (all >> j & 1) << 4);
}

}  // namespace

// 18 bytes: f16 scale, 16 bytes of nibbles.
void unpack_q4_0(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  unpack_nibbles(block + 2, parts.codes);
}

// 20 bytes: f16 scale, f16 minimum, 16 bytes of nibbles.
void unpack_q4_1(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  unpack_minimum(load_f16(block + 2), parts);
  unpack_nibbles(block + 4, parts.codes);
}

// 22 bytes: f16 scale, 4 bytes of fifth bits, 16 bytes of nibbles.
void unpack_q5_0(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  unpack_nibbles(block + 6, parts.codes);
  add_fifth_bits(block + 2, parts.codes);
}

// 24 bytes: f16 scale, f16 minimum, 4 bytes of fifth bits, 16 bytes of nibbles.
void unpack_q5_1(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  unpack_minimum(load_f16(block + 2), parts);
  unpack_nibbles(block + 8, parts.codes);
  add_fifth_bits(block + 4, parts.codes);
}

// 34 bytes: f16 scale, 32 signed bytes.
void unpack_q8_0(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  for (int j = 0; j < 2 * kHalf; ++j) parts.codes[j] = static_cast<std::uint8_t>(byte_at(block, 2 + j) ^ 0x80);
}

// 17 bytes: the exponent of the scale, 16 bytes of nibbles. The codebook has doubled values.
void unpack_mxfp4(const std::byte* block, BlockParts& parts) {
  unpack_scale(std::ldexp(1.0f, byte_at(block, 0) - 128), parts);
  unpack_nibbles(block + 1, parts.codes);
}

// 36 bytes: four scales of 16 elements, e4m3 without sign, and for each 8 bytes of nibbles. The codebook has doubled
// values.
void unpack_nvfp4(const std::byte* block, BlockParts& parts) {
  parts.scale = 1.0f;
  for (int g = 0; g < 4; ++g) {
    const int code = byte_at(block, g), exponent = code >> 3 & 15, mantissa = code & 7;
    const float half = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -10)
                                     : std::ldexp(8.0f + static_cast<float>(mantissa), exponent - 11);
    parts.scales[g] = code == 0x7f ? 0.0f : half;
    for (int j = 0; j < 8; ++j) {
      const int both = byte_at(block, 4 + 8 * g + j);
      parts.codes[16 * g + j] = static_cast<std::uint8_t>(both & 15);
      parts.codes[16 * g + j + 8] = static_cast<std::uint8_t>(both >> 4);
    }
  }
}

}  // namespace weft::blocks
