#include "tensor/group_blocks.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/bfloat16.h"
#include "tensor/block_format.h"
#include "tensor/float16.h"

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
    std::vector<std::byte> block = block_of_all_codes(dtype, kNf4HeaderBytes);
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

}  // namespace weft::group_blocks_test
