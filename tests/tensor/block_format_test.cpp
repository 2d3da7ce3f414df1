#include "tensor/block_format.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/sample.h"
#include "tensor/float16.h"
#include "tests/tensor/random_source.h"

namespace weft::block_format_test {

// The formats that are also written.
std::vector<DType> dtypes() {
  std::vector<DType> all;
  for (const BlockFormat& format : block_formats())
    if (format.quantize != nullptr) all.push_back(format.dtype);
  return all;
}

std::vector<std::byte> quantized(DType dtype, const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> blocks(static_cast<std::size_t>(bytes_of(dtype, count)));
  quantize_row(dtype, values.data(), blocks.data(), count);
  return blocks;
}

std::vector<float> dequantized(DType dtype, const std::vector<std::byte>& blocks, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  dequantize_row(dtype, blocks.data(), values.data(), count);
  return values;
}

float f16_at(const std::vector<std::byte>& blocks, std::size_t offset) {
  std::uint16_t code = 0;
  std::memcpy(&code, blocks.data() + offset, 2);
  return f16_to_f32(code);
}

TEST(BlockFormat, ReadTheLayoutOfTheFiles) {
  std::vector<std::byte> q4_0(18);
  const std::uint16_t half = f32_to_f16(0.5f);
  std::memcpy(q4_0.data(), &half, 2);
  for (std::size_t j = 0; j < 16; ++j) q4_0[2 + j] = static_cast<std::byte>(j | (15 - j) << 4);
  std::vector<float> values = dequantized(DType::q4_0, q4_0, 32);
  for (std::size_t j = 0; j < 16; ++j) {
    EXPECT_EQ(values[j], 0.5f * (static_cast<float>(j) - 8.0f));
    EXPECT_EQ(values[j + 16], 0.5f * (7.0f - static_cast<float>(j)));
  }

  std::vector<std::byte> q4_1(20);
  const std::uint16_t minimum = f32_to_f16(-3.25f);
  std::memcpy(q4_1.data(), &half, 2);
  std::memcpy(q4_1.data() + 2, &minimum, 2);
  std::memcpy(q4_1.data() + 4, q4_0.data() + 2, 16);
  values = dequantized(DType::q4_1, q4_1, 32);
  EXPECT_EQ(values[3], 0.5f * 3.0f - 3.25f);
  EXPECT_EQ(values[16], 0.5f * 15.0f - 3.25f);

  std::vector<std::byte> q8_0(34);
  std::memcpy(q8_0.data(), &half, 2);
  for (std::size_t j = 0; j < 32; ++j) q8_0[2 + j] = static_cast<std::byte>(static_cast<std::int8_t>(j * 8 - 128));
  values = dequantized(DType::q8_0, q8_0, 32);
  for (std::size_t j = 0; j < 32; ++j) EXPECT_EQ(values[j], 0.5f * (static_cast<float>(j) * 8.0f - 128.0f));
}

TEST(BlockFormat, EveryBlockTypeHasARow) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_block(dtype)) {
      const BlockFormat& format = block_format(dtype);
      EXPECT_EQ(dtype_info(dtype).block_elements % format.group, 0) << dtype_text(dtype);
      EXPECT_LE(dtype_info(dtype).block_elements, kMaxBlockElements) << dtype_text(dtype);
      EXPECT_LE(dtype_info(dtype).block_elements / format.group, kMaxBlockGroups) << dtype_text(dtype);
      EXPECT_TRUE(format.group == 16 || format.group == 32) << dtype_text(dtype);
      EXPECT_TRUE(format.codebook == nullptr || format.code_bits == 4) << dtype_text(dtype);
      if (!has_integer_codes(format)) continue;
      const CodeRange range = code_range(format);
      EXPECT_GE(range.least, -128) << dtype_text(dtype);
      EXPECT_LE(range.greatest, 127) << dtype_text(dtype);
    } else {
      EXPECT_THROW(block_format(dtype), InternalError) << dtype_text(dtype);
    }
  }
}

TEST(BlockFormat, ElementsAndUnpackedRowsEqualRows) {
  for (const BlockFormat& format : block_formats()) {
    const std::int64_t count = 3 * dtype_info(format.dtype).block_elements;
    const Tensor blocks = make_sample_tensor(SampleTensor("x", {count}, format.dtype), format.dtype, 6);
    std::vector<float> values(static_cast<std::size_t>(count));
    dequantize_row(format.dtype, blocks.data(), values.data(), count);
    const UnpackedRow row = has_integer_codes(format) ? unpack_row(format, blocks.data(), count) : UnpackedRow();
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(load_block_element(format.dtype, blocks.data(), static_cast<std::int64_t>(i)), values[i]);
      if (!has_integer_codes(format)) continue;
      const std::size_t group = i / static_cast<std::size_t>(format.group);
      ASSERT_EQ(row.scales[group] * static_cast<float>(row.codes[i]) + row.minimums[group], values[i])
          << dtype_text(format.dtype) << " element " << i;
    }
  }
}

TEST(BlockFormat, QuantizerScalesAsDocumented) {
  std::vector<float> values(32, 0.0f);
  values[5] = -4.0f;
  values[6] = 3.0f;
  const std::vector<std::byte> q4_0 = quantized(DType::q4_0, values);
  EXPECT_EQ(f16_at(q4_0, 0), 0.5f);
  EXPECT_EQ(q4_0[2 + 5], std::byte{0x80});  // code 0 below, 8 above
  EXPECT_EQ(q4_0[2 + 6], std::byte{0x8e});
  values[5] = 4.0f;
  EXPECT_EQ(f16_at(quantized(DType::q4_0, values), 0), -0.5f);
  EXPECT_EQ(quantized(DType::q4_0, values)[2 + 5], std::byte{0x80});

  std::vector<float> ramp(32);
  for (std::size_t j = 0; j < 32; ++j) ramp[j] = static_cast<float>(j % 16) * 0.25f - 1.0f;
  const std::vector<std::byte> q4_1 = quantized(DType::q4_1, ramp);
  EXPECT_EQ(f16_at(q4_1, 0), 0.25f);
  EXPECT_EQ(f16_at(q4_1, 2), -1.0f);
  for (std::size_t j = 0; j < 16; ++j) EXPECT_EQ(q4_1[4 + j], static_cast<std::byte>(j | j << 4));

  std::vector<float> signed_values(32, 0.0f);
  signed_values[0] = 127.0f;
  signed_values[1] = -63.5f;  // halves go away from zero
  signed_values[2] = 0.4f;
  const std::vector<std::byte> q8_0 = quantized(DType::q8_0, signed_values);
  EXPECT_EQ(f16_at(q8_0, 0), 1.0f);
  EXPECT_EQ(static_cast<std::int8_t>(q8_0[2]), 127);
  EXPECT_EQ(static_cast<std::int8_t>(q8_0[3]), -64);
  EXPECT_EQ(static_cast<std::int8_t>(q8_0[4]), 0);
}

TEST(BlockFormat, QuantizedValuesStayWithinAStep) {
  RandomSource random(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> values(64);
    float largest = 0.0f;
    for (float& value : values) {
      value = random.real(-3.0f, 3.0f);
      largest = std::max(largest, std::fabs(value));
    }
    const auto within = [&](DType dtype, float step) {
      const std::vector<float> back = dequantized(dtype, quantized(dtype, values), 64);
      for (std::size_t j = 0; j < 64; ++j) ASSERT_NEAR(back[j], values[j], step) << dtype_text(dtype);
    };
    // Half a step, but a whole one at the end of q4_0's range that has no code; the scale's rounding to f16 on top.
    within(DType::q4_0, largest / 8.0f * 1.01f);
    within(DType::q4_1, 2.0f * largest / 15.0f * 0.51f + 0.005f);
    within(DType::q8_0, largest / 127.0f * 0.51f + 0.002f);
  }
}

TEST(BlockFormat, QuantizerTakesZerosDenormalsAndConstants) {
  for (const DType dtype : dtypes()) {
    EXPECT_EQ(dequantized(dtype, quantized(dtype, std::vector<float>(32, 0.0f)), 32), std::vector<float>(32, 0.0f));
    for (const float value : {1e-45f, -1e-40f}) {
      for (const float back : dequantized(dtype, quantized(dtype, std::vector<float>(32, value)), 32))
        EXPECT_NEAR(back, 0.0f, 1e-6f);
    }
  }
  EXPECT_EQ(dequantized(DType::q4_1, quantized(DType::q4_1, std::vector<float>(32, 2.5f)), 32),
            std::vector<float>(32, 2.5f));
}

TEST(BlockFormat, RefuseWhatIsNotFiniteOrNotWhole) {
  std::vector<float> values(32, 1.0f);
  values[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(quantized(DType::q8_0, values), UserError);
  std::vector<std::byte> blocks(64);
  EXPECT_THROW(dequantize_row(DType::q4_0, blocks.data(), values.data(), 31), InternalError);
  EXPECT_THROW(dequantize_row(DType::f32, blocks.data(), values.data(), 32), InternalError);
  EXPECT_THROW(quantize_row(DType::q6_k, std::vector<float>(256).data(), std::vector<std::byte>(210).data(), 256),
               InternalError);
}

}  // namespace weft::block_format_test
