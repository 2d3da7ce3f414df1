#include "tensor/convert.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/sample.h"
#include "tensor/block_format.h"
#include "tensor/float16.h"

namespace weft::convert_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<DType> plain_dtypes() {
  std::vector<DType> dtypes;
  for (int i = 0; i < kDTypeCount; ++i)
    if (!is_block(static_cast<DType>(i))) dtypes.push_back(static_cast<DType>(i));
  return dtypes;
}

// `value` stored in a fresh element of `dtype` and read back.
double through(DType dtype, double value) {
  std::vector<std::byte> row(16);
  store_double(dtype, row.data(), 1, value);
  return load_double(dtype, row.data(), 1);
}

TEST(Convert, EveryDTypeHoldsZeroAndOne) {
  for (const DType dtype : plain_dtypes()) {
    if (dtype != DType::f8e8m0) {
      EXPECT_EQ(through(dtype, 0.0), 0.0) << dtype_text(dtype);
    }
    EXPECT_EQ(through(dtype, 1.0), 1.0) << dtype_text(dtype);
  }
}

TEST(Convert, FloatsTruncateAndSaturateToIntegers) {
  EXPECT_EQ(through(DType::i32, 2.9), 2);
  EXPECT_EQ(through(DType::i32, -2.9), -2);
  EXPECT_EQ(through(DType::i32, 3e9), 2147483647.0);
  EXPECT_EQ(through(DType::i8, -1000.0), -128);
  EXPECT_EQ(through(DType::u8, -1.0), 0);
  EXPECT_EQ(through(DType::u8, 255.9), 255);
  EXPECT_EQ(through(DType::u16, kInfinity), 65535);
  EXPECT_EQ(through(DType::u32, 1e10), 4294967295.0);
  EXPECT_EQ(through(DType::i4, 99.0), 7);
  EXPECT_EQ(through(DType::i4, -99.0), -8);
  for (const DType dtype :
       {DType::i64, DType::i32, DType::i16, DType::i8, DType::u8, DType::u16, DType::u32, DType::i4})
    EXPECT_EQ(through(dtype, std::nan("")), 0.0) << dtype_text(dtype);
  std::vector<std::byte> row(8);
  for (const double large : {1e30, kInfinity, 0x1p63}) {
    store_double(DType::i64, row.data(), 0, large);
    EXPECT_EQ(load_integer(DType::i64, row.data(), 0), INT64_MAX);
    store_double(DType::i64, row.data(), 0, -large);
    EXPECT_EQ(load_integer(DType::i64, row.data(), 0), INT64_MIN);
  }
}

TEST(Convert, IntegersStayExactAndWrap) {
  const std::vector<std::int64_t> values = {INT64_MAX, INT64_MIN, -1, 300, (std::int64_t{1} << 53) + 1};
  const auto* source = reinterpret_cast<const std::byte*>(values.data());
  std::vector<std::int64_t> same(5);
  convert_row(DType::i64, source, DType::i64, reinterpret_cast<std::byte*>(same.data()), 5);
  EXPECT_EQ(same, values);
  std::vector<std::int32_t> narrow(5);
  convert_row(DType::i64, source, DType::i32, reinterpret_cast<std::byte*>(narrow.data()), 5);
  EXPECT_EQ(narrow, (std::vector<std::int32_t>{-1, 0, -1, 300, 1}));
  std::vector<std::uint8_t> bytes(5);
  convert_row(DType::i64, source, DType::u8, reinterpret_cast<std::byte*>(bytes.data()), 5);
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{255, 0, 255, 44, 1}));
  std::vector<std::uint8_t> truths(5);
  convert_row(DType::i64, source, DType::boolean, reinterpret_cast<std::byte*>(truths.data()), 5);
  EXPECT_EQ(truths, (std::vector<std::uint8_t>{1, 1, 1, 1, 1}));
}

TEST(Convert, EverythingButZeroIsTrue) {
  EXPECT_EQ(through(DType::boolean, 0.25), 1.0);
  EXPECT_EQ(through(DType::boolean, -0.0), 0.0);
  EXPECT_EQ(through(DType::boolean, std::nan("")), 1.0);
}

TEST(Convert, DoublesRoundToSmallFormatsOnce) {
  // Just above the middle of two halves, by less than f32 can represent.
  const double above = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(through(DType::f16, above), 1.0 + 0x1p-10);
  EXPECT_EQ(through(DType::f16, 1.0 + 0x1p-11), 1.0);
  EXPECT_EQ(through(DType::bf16, 1.0 + 0x1p-8 + 0x1p-40), 1.0 + 0x1p-7);
  EXPECT_EQ(through(DType::f16, 1e300), kInfinity);
}

TEST(Convert, RowsEqualElementsForEveryPair) {
  const std::vector<float> values = {0.0f, 1.0f, -1.5f, 3.0f, 100.25f, -7.0f, 0.1f, 6.0f};
  constexpr std::int64_t kCount = 8;
  for (const DType from : plain_dtypes())
    for (const DType to : plain_dtypes()) {
      std::vector<std::byte> source(64);
      std::vector<std::byte> row(64);
      std::vector<std::byte> single(64);
      for (std::int64_t i = 0; i < kCount; ++i)
        store_float(from, source.data(), i, values[static_cast<std::size_t>(i)]);
      convert_row(from, source.data(), to, row.data(), kCount);
      for (std::int64_t i = 0; i < kCount; ++i) store_double(to, single.data(), i, load_double(from, source.data(), i));
      // Integers that wrap are the one difference to going through a double, which saturates.
      const bool whole = !is_floating(from) && !is_floating(to);
      for (std::int64_t i = 0; i < kCount; ++i) {
        if (whole) {
          store_integer(to, single.data(), i, load_integer(from, source.data(), i));
        }
        const double got = load_double(to, row.data(), i);
        const double wanted = load_double(to, single.data(), i);
        EXPECT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted)))
            << dtype_text(from) << " to " << dtype_text(to) << " " << i << ": " << got << " and " << wanted;
      }
    }
}

TEST(Convert, BlocksBecomeFloatsButNothingBecomesBlocks) {
  for (const BlockFormat& format : block_formats()) {
    const DType dtype = format.dtype;
    const std::int64_t count = 2 * dtype_info(dtype).block_elements;
    const Tensor blocks = make_sample_tensor(SampleTensor("x", {count}, dtype), dtype, 1);
    const auto size = static_cast<std::size_t>(count);
    std::vector<float> wide(size);
    std::vector<std::uint16_t> half(size);
    convert_row(dtype, blocks.data(), DType::f32, reinterpret_cast<std::byte*>(wide.data()), count);
    convert_row(dtype, blocks.data(), DType::f16, reinterpret_cast<std::byte*>(half.data()), count);
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(half[i], f32_to_f16(wide[i]));
    std::vector<std::byte> copy(static_cast<std::size_t>(bytes_of(dtype, count)));
    convert_row(dtype, blocks.data(), dtype, copy.data(), count);
    EXPECT_EQ(std::memcmp(copy.data(), blocks.data(), copy.size()), 0);
    EXPECT_THROW(convert_row(DType::f32, blocks.data(), dtype, copy.data(), count), UserError);
    EXPECT_THROW(store_float(dtype, copy.data(), 0, 1.0f), UserError);
  }
}

TEST(Convert, CopiesAnOddCountOfNibblesAndNothingBehind) {
  const std::vector<std::byte> source = {std::byte{0x21}, std::byte{0x43}};
  std::vector<std::byte> target = {std::byte{0xff}, std::byte{0xff}};
  convert_row(DType::i4, source.data(), DType::i4, target.data(), 3);
  EXPECT_EQ(target, (std::vector<std::byte>{std::byte{0x21}, std::byte{0xf3}}));
}

}  // namespace weft::convert_test
