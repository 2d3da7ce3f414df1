#pragma once

// The layouts of blocks, for the table in block_format.cpp: `unpack` and `quantize` of each format.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/block_format.h"
#include "tensor/float16.h"

namespace weft::blocks {

static_assert(std::endian::native == std::endian::little, "blocks are read as they are stored");

inline int byte_at(const std::byte* block, std::int64_t offset) { return std::to_integer<int>(block[offset]); }
inline std::uint32_t sixteen_bits(const std::byte* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}
inline std::uint32_t thirty_two_bits(const std::byte* from) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

// Codes are unpacked eight at a time, each in a byte of a number.
inline std::uint64_t eight_bytes(const void* from) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}
inline void store_eight(std::uint8_t* to, std::uint64_t bytes) { std::memcpy(to, &bytes, sizeof bytes); }
inline constexpr std::uint64_t in_each_byte(std::uint64_t byte) { return byte * 0x0101010101010101u; }

// Byte j of `count` holds the code of element j (low nibble) and of element j + count (high nibble).
inline void unpack_nibbles(const std::byte* bytes, std::uint8_t* codes, int count) {
  for (int j = 0; j < count; j += 8) {
    const std::uint64_t both = eight_bytes(bytes + j);
    store_eight(codes + j, both & in_each_byte(15));
    store_eight(codes + j + count, both >> 4 & in_each_byte(15));
  }
}

inline float load_f16(const std::byte* from) { return f16_to_f32(static_cast<std::uint16_t>(sixteen_bits(from))); }

// Blocks of 32 and 64 elements: block_layouts.cpp. unpack_q4_0 also reads iq4_nl, which differs in its codebook.
void unpack_q4_0(const std::byte* block, BlockParts& parts);
void unpack_q4_1(const std::byte* block, BlockParts& parts);
void unpack_q5_0(const std::byte* block, BlockParts& parts);
void unpack_q5_1(const std::byte* block, BlockParts& parts);
void unpack_q8_0(const std::byte* block, BlockParts& parts);
void unpack_mxfp4(const std::byte* block, BlockParts& parts);
void unpack_nvfp4(const std::byte* block, BlockParts& parts);

// Blocks of 256 elements: block_layouts_k.cpp.
void unpack_q2_k(const std::byte* block, BlockParts& parts);
void unpack_q3_k(const std::byte* block, BlockParts& parts);
void unpack_q4_k(const std::byte* block, BlockParts& parts);
void unpack_q5_k(const std::byte* block, BlockParts& parts);
void unpack_q6_k(const std::byte* block, BlockParts& parts);
void unpack_iq4_xs(const std::byte* block, BlockParts& parts);
void unpack_tq1_0(const std::byte* block, BlockParts& parts);
void unpack_tq2_0(const std::byte* block, BlockParts& parts);

// Blocks of 256 elements whose codes are rows of grids: block_layouts_grid.cpp.
void unpack_iq1_s(const std::byte* block, BlockParts& parts);
void unpack_iq1_m(const std::byte* block, BlockParts& parts);
void unpack_iq2_xxs(const std::byte* block, BlockParts& parts);
void unpack_iq2_xs(const std::byte* block, BlockParts& parts);
void unpack_iq2_s(const std::byte* block, BlockParts& parts);
void unpack_iq3_xxs(const std::byte* block, BlockParts& parts);
void unpack_iq3_s(const std::byte* block, BlockParts& parts);

// Groups of the weights of folders: group_blocks.cpp.
void unpack_i4g32(const std::byte* block, BlockParts& parts);
void unpack_i4g64(const std::byte* block, BlockParts& parts);
void unpack_i4g128(const std::byte* block, BlockParts& parts);
void unpack_nf4g32(const std::byte* block, BlockParts& parts);
void unpack_nf4g64(const std::byte* block, BlockParts& parts);
void unpack_i8g32(const std::byte* block, BlockParts& parts);
void unpack_e4m3g32(const std::byte* block, BlockParts& parts);
void unpack_e4m3g128(const std::byte* block, BlockParts& parts);
void unpack_e2m1g16(const std::byte* block, BlockParts& parts);

// block_quantizers.cpp.
void quantize_q4_0(const float* values, std::byte* block);
void quantize_q4_1(const float* values, std::byte* block);
void quantize_q8_0(const float* values, std::byte* block);

}  // namespace weft::blocks
