#include "tensor/group_blocks.h"

#include <cstring>

#include "base/error.h"
#include "tensor/block_layouts.h"
#include "tensor/float8.h"
#include "tensor/float_bits.h"

namespace weft {
namespace {

constexpr std::uint32_t kDroppedBits = (1u << 13) - 1;  // of an f32: a header has 10 bits of the mantissa

}  // namespace

bool fits_group_header(float scale) { return (bits_of_float(scale) & kDroppedBits) == 0; }

GroupHeader group_header(float scale, int zero_point) {
  CHECK(fits_group_header(scale) && zero_point >= 0 && zero_point <= kMostZeroPoint,
        "a block cannot hold a scale of {} and a zero point of {}", scale, zero_point);
  const std::uint32_t bits = bits_of_float(scale);
  return {static_cast<std::uint16_t>(bits >> 16),
          static_cast<std::uint8_t>((bits >> 8 & 0xe0) | static_cast<unsigned>(zero_point))};
}

float scale_of(GroupHeader header) {
  return float_of_bits(static_cast<std::uint32_t>(header.scale) << 16 | (header.rest & 0xe0u) << 8);
}

void store_group_header(GroupHeader header, std::byte* block) {
  std::memcpy(block, &header.scale, sizeof header.scale);
  std::memcpy(block + sizeof header.scale, &header.rest, sizeof header.rest);
}

namespace blocks {
namespace {

constexpr int kScaleGroup = 32;  // the elements that share an entry of BlockParts::scales

template <int elements>
void unpack_pairs(const std::byte* bytes, BlockParts& parts) {
  for (int i = 0; i < elements / 8; ++i) {
    std::uint64_t pairs = thirty_two_bits(bytes + 4 * i);  // byte j moves to byte 2 * j
    pairs = (pairs | pairs << 16) & 0x0000ffff0000ffffu;
    pairs = (pairs | pairs << 8) & 0x00ff00ff00ff00ffu;
    store_eight(parts.codes + 8 * i, (pairs | pairs << 4) & in_each_byte(15));
  }
}

// The minimum is minus the zero point times the scale. This product is exact.
template <int elements>
void unpack_i4g(const std::byte* block, BlockParts& parts) {
  const GroupHeader header{static_cast<std::uint16_t>(sixteen_bits(block)), static_cast<std::uint8_t>(block[2])};
  parts.scale = parts.minimum = scale_of(header);
  for (int g = 0; g < elements / kScaleGroup; ++g) {
    parts.scales[g] = 1.0f;
    parts.minimums[g] = -static_cast<float>(zero_point_of(header));
  }
  unpack_pairs<elements>(block + kGroupHeaderBytes, parts);
}

template <int elements>
void unpack_float_scale(const std::byte* block, BlockParts& parts) {
  parts.scale = float_of_bits(thirty_two_bits(block));
  for (int g = 0; g < elements / kScaleGroup; ++g) parts.scales[g] = 1.0f;
}

template <int elements>
void unpack_nf4g(const std::byte* block, BlockParts& parts) {
  unpack_float_scale<elements>(block, parts);
  unpack_pairs<elements>(block + kFloatScaleBytes, parts);
}

template <int elements>
void unpack_e4m3g(const std::byte* block, BlockParts& parts) {
  unpack_float_scale<elements>(block, parts);
  std::memcpy(parts.codes, block + kFloatScaleBytes, elements);
}

}  // namespace

void unpack_i4g32(const std::byte* block, BlockParts& parts) { unpack_i4g<32>(block, parts); }
void unpack_i4g64(const std::byte* block, BlockParts& parts) { unpack_i4g<64>(block, parts); }
void unpack_i4g128(const std::byte* block, BlockParts& parts) { unpack_i4g<128>(block, parts); }
void unpack_nf4g32(const std::byte* block, BlockParts& parts) { unpack_nf4g<32>(block, parts); }
void unpack_nf4g64(const std::byte* block, BlockParts& parts) { unpack_nf4g<64>(block, parts); }
void unpack_e4m3g32(const std::byte* block, BlockParts& parts) { unpack_e4m3g<32>(block, parts); }
void unpack_e4m3g128(const std::byte* block, BlockParts& parts) { unpack_e4m3g<128>(block, parts); }

void unpack_i8g32(const std::byte* block, BlockParts& parts) {
  unpack_float_scale<32>(block, parts);
  for (int i = 0; i < 32; ++i) parts.codes[i] = static_cast<std::uint8_t>(byte_at(block, kFloatScaleBytes + i) ^ 0x80);
}

// The codebook has doubled values.
void unpack_e2m1g16(const std::byte* block, BlockParts& parts) {
  parts.scale = float_of_bits(thirty_two_bits(block)) * 0.5f;
  for (int g = 0; g < kSmallScales; ++g)
    parts.scales[g] = f8e4m3_to_f32(static_cast<std::uint8_t>(byte_at(block, kFloatScaleBytes + g)));
  unpack_pairs<64>(block + kFloatScaleBytes + kSmallScales, parts);
}

}  // namespace blocks
}  // namespace weft
