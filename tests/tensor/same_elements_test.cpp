#include "tensor/same_elements.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/convert.h"

namespace weft::same_elements_test {

std::vector<DType> all_dtypes() {
  std::vector<DType> dtypes;
  for (int i = 0; i <= static_cast<int>(DType::q8_0); ++i) dtypes.push_back(static_cast<DType>(i));
  return dtypes;
}

template <class T, std::size_t count>
bool are_same(DType dtype, const std::array<T, count>& a, const std::array<T, count>& b) {
  return are_same_elements(dtype, reinterpret_cast<const std::byte*>(a.data()),
                           reinterpret_cast<const std::byte*>(b.data()), static_cast<std::int64_t>(count));
}

TEST(SameElements, EveryBitOfEveryTypeCounts) {
  for (const DType dtype : all_dtypes()) {
    const DTypeInfo& info = dtype_info(dtype);
    std::vector<std::byte> row(static_cast<std::size_t>(2 * info.block_bytes), std::byte{0x11});
    const auto count = static_cast<std::int64_t>(row.size()) / info.block_bytes * info.block_elements;
    for (std::size_t bit = 0; bit < 8 * row.size(); ++bit) {
      std::vector<std::byte> other = row;
      other[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(are_same_elements(dtype, row.data(), other.data(), count)) << info.text << " " << bit;
    }
    EXPECT_TRUE(are_same_elements(dtype, row.data(), row.data(), count)) << info.text;
    EXPECT_TRUE(are_same_elements(dtype, row.data(), row.data(), 0)) << info.text;
  }
}

TEST(SameElements, AnyNanIsTheSameAsAnyOther) {
  using F16 = std::array<std::uint16_t, 2>;
  EXPECT_TRUE(are_same(DType::f16, F16{0x3c00, 0x7e00}, F16{0x3c00, 0xfe01}));
  EXPECT_FALSE(are_same(DType::f16, F16{0x3c00, 0x7e00}, F16{0x3c01, 0xfe01}));
  EXPECT_FALSE(are_same(DType::f16, F16{0x3c00, 0x7e00}, F16{0x3c00, 0x7c00})) << "an infinity is no NaN";
  EXPECT_FALSE(are_same(DType::u16, F16{0x3c00, 0x7e00}, F16{0x3c00, 0xfe01})) << "integers are their bits";
  EXPECT_TRUE(are_same(DType::f32, std::array{0x7fc00000u}, std::array{0xffc00001u}));
  EXPECT_FALSE(are_same(DType::f32, std::array{0u}, std::array{0x80000000u})) << "zeros of two signs";
  EXPECT_TRUE(are_same(DType::bf16, F16{0, 0x7fc0}, F16{0, 0xffff}));
  EXPECT_TRUE(are_same(DType::f8e4m3, std::array<std::uint8_t, 1>{0x7f}, std::array<std::uint8_t, 1>{0xff}));
}

TEST(SameElements, PackedElementsAreReadFromTheirHalfOfAByte) {
  const std::array<std::uint8_t, 2> row{0x21, 0xf3};
  const auto* const bytes = reinterpret_cast<const std::byte*>(row.data());
  EXPECT_EQ(element_width(DType::f4e2m1), 4);
  EXPECT_EQ(element_width(DType::i4), 4);
  EXPECT_EQ(element_bits(DType::f4e2m1, bytes, 0), 1u);
  EXPECT_EQ(element_bits(DType::f4e2m1, bytes, 1), 2u);
  EXPECT_EQ(element_bits(DType::i4, bytes, 3), 15u);
  EXPECT_EQ(element_bits(DType::u16, bytes, 0), 0xf321u);
  EXPECT_THROW(element_width(DType::q4_1), InternalError);
}

}  // namespace weft::same_elements_test
