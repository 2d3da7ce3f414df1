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

// Bit j of 32 is the fifth bit of element j.
void add_fifth_bits(const std::byte* bits, std::uint8_t* codes) {
  for (int i = 0; i < 2 * kHalf / 8; ++i) {
    // Bit j of a byte that is in all bytes is kept in byte j. Adding 127 moves it, if it is set, to the highest bit.
    const std::uint64_t own = in_each_byte(static_cast<std::uint64_t>(byte_at(bits, i))) & 0x8040201008040201u;
    const std::uint64_t fifth = (own + in_each_byte(127)) >> 3 & in_each_byte(16);
    store_eight(codes + 8 * i, eight_bytes(codes + 8 * i) | fifth);
  }
}

// 2^(exponent - 128), which is subnormal for the exponents 0 and 1.
float half_of_power(int exponent) {
  const auto bits = exponent < 2 ? 0x200000u << exponent : static_cast<std::uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

}  // namespace

// 18 bytes: f16 scale, 16 bytes of nibbles.
void unpack_q4_0(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  unpack_nibbles(block + 2, parts.codes, kHalf);
}

// 20 bytes: f16 scale, f16 minimum, 16 bytes of nibbles.
void unpack_q4_1(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  unpack_minimum(load_f16(block + 2), parts);
  unpack_nibbles(block + 4, parts.codes, kHalf);
}

// 22 bytes: f16 scale, 4 bytes of fifth bits, 16 bytes of nibbles.
void unpack_q5_0(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  unpack_nibbles(block + 6, parts.codes, kHalf);
  add_fifth_bits(block + 2, parts.codes);
}

// 24 bytes: f16 scale, f16 minimum, 4 bytes of fifth bits, 16 bytes of nibbles.
void unpack_q5_1(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  unpack_minimum(load_f16(block + 2), parts);
  unpack_nibbles(block + 8, parts.codes, kHalf);
  add_fifth_bits(block + 4, parts.codes);
}

// 34 bytes: f16 scale, 32 signed bytes.
void unpack_q8_0(const std::byte* block, BlockParts& parts) {
  unpack_scale(load_f16(block), parts);
  for (int j = 0; j < 2 * kHalf; j += 8) store_eight(parts.codes + j, eight_bytes(block + 2 + j) ^ in_each_byte(0x80));
}

// 17 bytes: the exponent of the scale, 16 bytes of nibbles. The codebook has doubled values.
void unpack_mxfp4(const std::byte* block, BlockParts& parts) {
  unpack_scale(half_of_power(byte_at(block, 0)), parts);
  unpack_nibbles(block + 1, parts.codes, kHalf);
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
    unpack_nibbles(block + 4 + 8 * g, parts.codes + 16 * g, 8);
  }
}

}  // namespace weft::blocks
