#include "tensor/group_blocks.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/bfloat16.h"
#include "tensor/block_format.h"
#include "tensor/float16.h"
#include "tensor/float4.h"

namespace weft::group_blocks_test {

constexpr DType kIntegerTypes[] = {DType::i4g32, DType::i4g64, DType::i4g128};
constexpr DType kNf4Types[] = {DType::nf4g32, DType::nf4g64};

TEST(GroupBlocks, HoldEveryScaleOfSixteenBitsExactly) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    for (const float scale :
         {f16_to_f32(static_cast<std::uint16_t>(bits)), bf16_to_f32(static_cast<std::uint16_t>(bits))}) {
      if (!std::isfinite(scale)) continue;
      ASSERT_TRUE(fits_group_header(scale)) << scale;
      const int zero_point = bits % (kMostZeroPoint + 1);
      const GroupHeader header = group_header(scale, zero_point);
      ASSERT_EQ(scale_of(header), scale);
      ASSERT_EQ(zero_point_of(header), zero_point);
    }
  }
}

TEST(GroupBlocks, RefuseWhatDoesNotFit) {
  EXPECT_FALSE(fits_group_header(0.1f));
  EXPECT_THROW(group_header(0.1f, 8), InternalError);
  EXPECT_THROW(group_header(0.5f, 32), InternalError);
  EXPECT_THROW(group_header(0.5f, -1), InternalError);
}

// Element i has the code i % 16.
std::vector<std::byte> block_of_all_codes(DType dtype, int header_bytes) {
  const DTypeInfo& info = dtype_info(dtype);
  std::vector<std::byte> block(static_cast<std::size_t>(info.block_bytes));
  for (std::int64_t i = 0; i < info.block_elements / 2; ++i) {
    const std::int64_t low = 2 * i % 16;
    block[static_cast<std::size_t>(header_bytes + i)] = static_cast<std::byte>(low | (low + 1) << 4);
  }
  return block;
}

TEST(GroupBlocks, AreTheScaleTimesTheDistanceToTheZeroPoint) {
  const float scale = f16_to_f32(0x2e67);  // all bits of the mantissa are used
  for (const DType dtype : kIntegerTypes) {
    for (const int zero_point : {0, 7, 16}) {
      std::vector<std::byte> block = block_of_all_codes(dtype, kGroupHeaderBytes);
      store_group_header(group_header(scale, zero_point), block.data());
      std::vector<float> values(static_cast<std::size_t>(dtype_info(dtype).block_elements));
      dequantize_row(dtype, block.data(), values.data(), dtype_info(dtype).block_elements);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], scale * static_cast<float>(static_cast<int>(i % 16) - zero_point)) << dtype_text(dtype);
    }
  }
}

TEST(GroupBlocks, OfNf4AreTheScaleTimesItsNumbers) {
  const float scale = 0.1f;
  for (const DType dtype : kNf4Types) {
    std::vector<std::byte> block = block_of_all_codes(dtype, kFloatScaleBytes);
    std::memcpy(block.data(), &scale, sizeof scale);
    std::vector<float> values(static_cast<std::size_t>(dtype_info(dtype).block_elements));
    dequantize_row(dtype, block.data(), values.data(), dtype_info(dtype).block_elements);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], kNf4Values[i % 16] * scale) << dtype_text(dtype);
    EXPECT_FALSE(has_integer_codes(dtype));
    EXPECT_THROW(unpack_row(block_format(dtype), block.data(), dtype_info(dtype).block_elements), InternalError);
    EXPECT_THROW(code_range(block_format(dtype)), InternalError);
  }
  EXPECT_TRUE(has_integer_codes(DType::i4g64));
  EXPECT_FALSE(has_integer_codes(DType::f32));
}

std::vector<float> values_of(DType dtype, const std::vector<std::byte>& blocks) {
  const DTypeInfo& info = dtype_info(dtype);
  const std::int64_t count = static_cast<std::int64_t>(blocks.size()) / info.block_bytes * info.block_elements;
  std::vector<float> values(static_cast<std::size_t>(count));
  dequantize_row(dtype, blocks.data(), values.data(), count);
  return values;
}

// Blocks with a scale in f32, whose bytes of codes count from 0 to 255.
std::vector<std::byte> blocks_of_all_bytes(DType dtype, float scale) {
  const auto bytes = static_cast<std::size_t>(dtype_info(dtype).block_bytes) - sizeof scale;
  std::vector<std::byte> blocks;
  for (std::size_t code = 0; code < 256; ++code) {
    if (code % bytes == 0) {
      blocks.resize(blocks.size() + sizeof scale);
      std::memcpy(blocks.data() + blocks.size() - sizeof scale, &scale, sizeof scale);
    }
    blocks.push_back(static_cast<std::byte>(code));
  }
  return blocks;
}

TEST(GroupBlocks, OfEightBitsAreTheScaleTimesTheCode) {
  const float scale = 0.1f;
  const std::vector<float> integers = values_of(DType::i8g32, blocks_of_all_bytes(DType::i8g32, scale));
  ASSERT_EQ(integers.size(), 256u);
  for (std::size_t i = 0; i < 256; ++i)
    ASSERT_EQ(integers[i], scale * static_cast<float>(static_cast<std::int8_t>(i))) << i;
  for (const DType dtype : {DType::e4m3g32, DType::e4m3g128}) {
    const std::vector<float> values = values_of(dtype, blocks_of_all_bytes(dtype, scale));
    ASSERT_EQ(values.size(), 256u);
    for (std::size_t i = 0; i < 256; ++i) {
      const float wanted = scale * f8e4m3_to_f32(static_cast<std::uint8_t>(i));
      ASSERT_TRUE(values[i] == wanted || (std::isnan(values[i]) && std::isnan(wanted))) << dtype_text(dtype) << i;
    }
    EXPECT_FALSE(has_integer_codes(dtype));
  }
  EXPECT_TRUE(has_integer_codes(DType::i8g32));
}

TEST(GroupBlocks, OfE2m1HaveAFactorAndFourScales) {
  const float factor = 0.3f;
  const std::uint8_t scales[4] = {0x7e, 0x38, 0x01, 0x33};  // 448, 1, the least, 0.6875
  std::vector<std::byte> block(static_cast<std::size_t>(dtype_info(DType::e2m1g16).block_bytes));
  std::memcpy(block.data(), &factor, sizeof factor);
  std::memcpy(block.data() + sizeof factor, scales, sizeof scales);
  for (std::size_t i = 0; i < 32; ++i) block[8 + i] = static_cast<std::byte>(2 * i % 16 | (2 * i + 1) % 16 << 4);
  const std::vector<float> values = values_of(DType::e2m1g16, block);
  ASSERT_EQ(values.size(), 64u);
  for (std::size_t i = 0; i < 64; ++i) {
    const float scale = factor * f8e4m3_to_f32(scales[i / 16]);
    ASSERT_EQ(values[i], scale * f4e2m1_to_f32(static_cast<std::uint8_t>(i % 16))) << i;
  }
}

}  // namespace weft::group_blocks_test
