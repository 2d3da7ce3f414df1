// Blocks whose codes are rows of grids, with a sign for each element or, in iq1, one offset for 8 elements.

#include "tensor/block_grids.h"
#include "tensor/block_layouts.h"

namespace weft::blocks {
namespace {

// A stored code is the value plus this.
constexpr int kZeroCode = 64;
constexpr int kZeroCodeOfFiveBits = 16;

void put(int value, int zero_code, int signs, int element, std::uint8_t* code) {
  *code = static_cast<std::uint8_t>((signs >> element & 1) != 0 ? zero_code - value : zero_code + value);
}

// Eight elements of iq2.
void put_row(std::uint16_t row, int signs, std::uint8_t* codes) {
  for (int i = 0; i < 8; ++i) put(kIq2Values[row >> 2 * i & 3], kZeroCode, signs, i, codes + i);
}

// Seven bits stand for eight signs, of which an even number is negative.
int even_signs(std::uint32_t bits) {
  const auto seven = bits & 127;
  return static_cast<int>(seven | (static_cast<std::uint32_t>(std::popcount(seven)) & 1) << 7);
}

// ggml multiplies the block's scale by half of an odd number, or a quarter or an eighth of it; the power of two is in
// `scale` here. Both products are exact.
float odd(int bits) { return static_cast<float>(2 * bits + 1); }

// Scales of groups of 16, a nibble each.
void unpack_nibble_scales(const std::byte* bytes, BlockParts& parts) {
  for (int g = 0; g < 16; ++g) parts.scales[g] = odd(byte_at(bytes, g / 2) >> 4 * (g % 2) & 15);
}

// Eight elements of iq1: eight times the grid's values, plus or minus one.
void put_offset_row(std::uint16_t row, bool is_negative, std::uint8_t* codes) {
  for (int i = 0; i < 8; ++i) {
    const int value = 8 * ((row >> 2 * i & 3) - 1) + (is_negative ? -1 : 1);
    codes[i] = static_cast<std::uint8_t>(kZeroCodeOfFiveBits + value);
  }
}

}  // namespace

// 50 bytes: f16 scale; 32 bytes, the low bits of rows; two bytes for each group of 32: three high bits for each row,
// three of the scale and the sign of the offset.
void unpack_iq1_s(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block) * 0.125f;
  for (int g = 0; g < 8; ++g) {
    const std::uint32_t high = sixteen_bits(block + 34 + 2 * g);
    parts.scales[g] = odd(static_cast<int>(high >> 12 & 7));
    for (int k = 0; k < 4; ++k) {
      const std::uint32_t index = static_cast<std::uint32_t>(byte_at(block, 2 + 4 * g + k)) | (high >> 3 * k & 7) << 8;
      put_offset_row(kIq1SGrid[index], high >> 15 != 0, parts.codes + 32 * g + 8 * k);
    }
  }
}

// 56 bytes: 32 bytes, the low bits of rows; 16 bytes, for each row a nibble of three high bits and the sign of the
// offset; 8 bytes of scales, in which each 16 bits have four of three bits for groups of 16, and a nibble of the f16
// scale.
void unpack_iq1_m(const std::byte* block, BlockParts& parts) {
  std::uint32_t scale = 0;
  for (int word = 0; word < 4; ++word) {
    const std::uint32_t bits = sixteen_bits(block + 48 + 2 * word);
    scale |= bits >> 12 << 4 * word;
    for (int i = 0; i < 4; ++i) parts.scales[4 * word + i] = odd(static_cast<int>(bits >> 3 * i & 7));
  }
  parts.scale = f16_to_f32(static_cast<std::uint16_t>(scale)) * 0.125f;
  for (int k = 0; k < 32; ++k) {
    const int high = byte_at(block, 32 + k / 2) >> 4 * (k % 2) & 15;
    put_offset_row(kIq1SGrid[byte_at(block, k) | (high & 7) << 8], (high & 8) != 0, parts.codes + 8 * k);
  }
}

// 66 bytes: f16 scale; for each group of 32 four rows of a byte each, then four times seven bits of signs and four bits
// of the scale.
void unpack_iq2_xxs(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block) * 0.125f;
  for (int g = 0; g < 8; ++g) {
    const std::byte* group = block + 2 + 8 * g;
    const std::uint32_t bits = thirty_two_bits(group + 4);
    parts.scales[g] = odd(static_cast<int>(bits >> 28));
    for (int k = 0; k < 4; ++k)
      put_row(kIq2XxsGrid[byte_at(group, k)], even_signs(bits >> 7 * k), parts.codes + 32 * g + 8 * k);
  }
}

// 74 bytes: f16 scale; two bytes for each row, nine bits of the index and seven of signs; 8 bytes of scales.
void unpack_iq2_xs(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block) * 0.125f;
  unpack_nibble_scales(block + 66, parts);
  for (int k = 0; k < 32; ++k) {
    const std::uint32_t bits = sixteen_bits(block + 2 + 2 * k);
    put_row(kIq2XsGrid[bits & 511], even_signs(bits >> 9), parts.codes + 8 * k);
  }
}

// 82 bytes: f16 scale; 32 bytes, the low bits of rows; 32 bytes of signs; 8 bytes, two high bits for each row; 8 bytes
// of scales.
void unpack_iq2_s(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block) * 0.125f;
  unpack_nibble_scales(block + 74, parts);
  for (int k = 0; k < 32; ++k) {
    const int index = byte_at(block, 2 + k) | (byte_at(block, 66 + k / 4) >> 2 * (k % 4) & 3) << 8;
    put_row(kIq2SGrid[index], byte_at(block, 34 + k), parts.codes + 8 * k);
  }
}

// 98 bytes: f16 scale; 64 bytes of rows of 4; for each group of 32 four times seven bits of signs and four of the
// scale.
void unpack_iq3_xxs(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block) * 0.25f;
  for (int g = 0; g < 8; ++g) {
    const std::uint32_t bits = thirty_two_bits(block + 66 + 4 * g);
    parts.scales[g] = odd(static_cast<int>(bits >> 28));
    for (int i = 0; i < 32; ++i) {
      const std::uint16_t row = kIq3XxsGrid[byte_at(block, 2 + 8 * g + i / 4)];
      put(kIq3XxsValues[row >> 3 * (i % 4) & 7], kZeroCode, even_signs(bits >> 7 * (i / 8)), i % 8,
          parts.codes + 32 * g + i);
    }
  }
}

// 110 bytes: f16 scale; 64 bytes, the low bits of rows of 4; 8 bytes, the ninth bits; 32 bytes of signs; 4 bytes, a
// nibble of scale for each group of 32.
void unpack_iq3_s(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block);
  for (int g = 0; g < 8; ++g) parts.scales[g] = odd(byte_at(block, 106 + g / 2) >> 4 * (g % 2) & 15);
  for (int k = 0; k < 64; ++k) {
    const std::uint16_t row = kIq3SGrid[byte_at(block, 2 + k) | (byte_at(block, 66 + k / 8) >> k % 8 & 1) << 8];
    const int signs = byte_at(block, 74 + k / 2) >> 4 * (k % 2);
    for (int i = 0; i < 4; ++i) put(2 * (row >> 3 * i & 7) + 1, kZeroCodeOfFiveBits, signs, i, parts.codes + 4 * k + i);
  }
}

}  // namespace weft::blocks
