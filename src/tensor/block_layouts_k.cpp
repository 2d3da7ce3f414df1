// Blocks of 256 elements with scales in two steps: a number of few bits for each group times one f16 of the block.

#include "tensor/block_layouts.h"

namespace weft::blocks {
namespace {

// Two bits of each element. Byte 32 * n + j holds elements 128 * n + 32 * i + j, i from 0 to 3.
void unpack_pairs_of_bits(const std::byte* bytes, std::uint8_t* codes) {
  for (int n = 0; n < 2; ++n)
    for (int j = 0; j < 32; j += 8) {
      const std::uint64_t all = eight_bytes(bytes + 32 * n + j);
      for (int i = 0; i < 4; ++i) store_eight(codes + 128 * n + 32 * i + j, all >> 2 * i & in_each_byte(3));
    }
}

// Four bits of each element: bytes 32 * p to 32 * p + 31 hold groups 2 * p (low nibbles) and 2 * p + 1.
void unpack_nibbles_of_pairs(const std::byte* bytes, std::uint8_t* codes) {
  for (int p = 0; p < 4; ++p) unpack_nibbles(bytes + 32 * p, codes + 64 * p, 32);
}

// Adds a bit of each element as bit `place` of its code. Bit g of byte j of 32 is that of element 32 * g + j.
void add_bit(const std::byte* bytes, int place, std::uint8_t* codes) {
  for (int j = 0; j < 32; j += 8) {
    const std::uint64_t all = eight_bytes(bytes + j);
    for (int g = 0; g < 8; ++g) {
      std::uint8_t* to = codes + 32 * g + j;
      store_eight(to, eight_bytes(to) | (all >> g & in_each_byte(1)) << place);
    }
  }
}

// The scale and minimum of the block and, in 12 bytes, of its eight groups, six bits each: those of groups 0 to 3 are
// in bytes of their own, those of the others in nibbles and in the two bits that these bytes leave.
void unpack_scales_and_minimums(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block);
  parts.minimum = -load_f16(block + 2);
  const std::byte* s = block + 4;
  for (int g = 0; g < 4; ++g) {
    const int scale = byte_at(s, g), minimum = byte_at(s, g + 4), low = byte_at(s, g + 8);
    parts.scales[g] = static_cast<float>(scale & 63);
    parts.minimums[g] = static_cast<float>(minimum & 63);
    parts.scales[g + 4] = static_cast<float>((low & 15) | scale >> 6 << 4);
    parts.minimums[g + 4] = static_cast<float>(low >> 4 | minimum >> 6 << 4);
  }
}

}  // namespace

// 84 bytes: a byte for each group of 16, scale and minimum; 64 bytes of codes; f16 scale, f16 minimum.
void unpack_q2_k(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block + 80);
  parts.minimum = -load_f16(block + 82);
  for (int g = 0; g < 16; ++g) {
    parts.scales[g] = static_cast<float>(byte_at(block, g) & 15);
    parts.minimums[g] = static_cast<float>(byte_at(block, g) >> 4);
  }
  unpack_pairs_of_bits(block + 16, parts.codes);
}

// 110 bytes: 32 bytes of third bits, 64 bytes of the other two, 12 bytes of scales of six bits, f16 scale.
void unpack_q3_k(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block + 108);
  const std::byte* s = block + 96;
  for (int g = 0; g < 16; ++g) {
    const int low = g < 8 ? byte_at(s, g) & 15 : byte_at(s, g - 8) >> 4;
    const int high = byte_at(s, 8 + g % 4) >> 2 * (g / 4) & 3;
    parts.scales[g] = static_cast<float>((low | high << 4) - 32);
  }
  unpack_pairs_of_bits(block + 32, parts.codes);
  add_bit(block, 2, parts.codes);
}

// 144 bytes: f16 scale, f16 minimum, 12 bytes of those of the groups, 128 bytes of nibbles.
void unpack_q4_k(const std::byte* block, BlockParts& parts) {
  unpack_scales_and_minimums(block, parts);
  unpack_nibbles_of_pairs(block + 16, parts.codes);
}

// 176 bytes: as q4_K, but with 32 bytes of fifth bits before the nibbles.
void unpack_q5_k(const std::byte* block, BlockParts& parts) {
  unpack_scales_and_minimums(block, parts);
  unpack_nibbles_of_pairs(block + 48, parts.codes);
  add_bit(block + 16, 4, parts.codes);
}

// 210 bytes: 128 bytes of nibbles, 64 bytes of the other two bits, a signed byte for each group of 16, f16 scale.
void unpack_q6_k(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block + 208);
  for (int g = 0; g < 16; ++g) parts.scales[g] = static_cast<float>(static_cast<std::int8_t>(byte_at(block, 192 + g)));
  for (int n = 0; n < 2; ++n) {
    unpack_nibbles(block + 64 * n, parts.codes + 128 * n, 64);
    for (int j = 0; j < 32; j += 8) {
      const std::uint64_t high = eight_bytes(block + 128 + 32 * n + j);
      for (int i = 0; i < 4; ++i) {
        std::uint8_t* to = parts.codes + 128 * n + 32 * i + j;
        store_eight(to, eight_bytes(to) | (high >> 2 * i & in_each_byte(3)) << 4);
      }
    }
  }
}

// 136 bytes: f16 scale; scales of eight groups, six bits each: their high bits in two bytes, their nibbles in four; 128
// bytes of nibbles, for each group those of elements j and j + 16 together.
void unpack_iq4_xs(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block);
  const std::uint32_t high = sixteen_bits(block + 2);
  for (int g = 0; g < 8; ++g) {
    const int low = byte_at(block, 4 + g / 2) >> 4 * (g % 2) & 15;
    parts.scales[g] = static_cast<float>((low | static_cast<int>(high >> 2 * g & 3) << 4) - 32);
    unpack_nibbles(block + 8 + 16 * g, parts.codes + 32 * g, 16);
  }
}

// 54 bytes: 48 bytes of five digits of base 3, 4 bytes of four, f16 scale. A byte is the digits' fraction of 256,
// rounded up: multiplying by 3 moves the next digit above the byte.
void unpack_tq1_0(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block + 52);
  for (float& scale : parts.scales) scale = 1.0f;
  const auto digits = [&](int first_byte, int bytes, int count, std::uint8_t* codes) {
    for (int j = 0; j < bytes; ++j) {
      int fraction = byte_at(block, first_byte + j);
      for (int n = 0; n < count; ++n, fraction = fraction * 3 & 255)
        codes[n * bytes + j] = static_cast<std::uint8_t>(fraction * 3 >> 8);
    }
  };
  digits(0, 32, 5, parts.codes);
  digits(32, 16, 5, parts.codes + 160);
  digits(48, 4, 4, parts.codes + 240);
}

// 66 bytes: 64 bytes of codes, f16 scale.
void unpack_tq2_0(const std::byte* block, BlockParts& parts) {
  parts.scale = load_f16(block + 64);
  for (float& scale : parts.scales) scale = 1.0f;
  unpack_pairs_of_bits(block, parts.codes);
}

}  // namespace weft::blocks
