#include "compiler/check/tensor_difference.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/tensor_view.h"

namespace weft::tensor_difference_test {

template <class T>
Tensor filled(DType dtype, const std::vector<T>& values) {
  return Tensor::from_bytes(Meta::tensor(dtype, {static_cast<std::int64_t>(values.size())}), values.data());
}
Tensor floats(const std::vector<float>& values) { return filled(DType::f32, values); }

TEST(TensorDifference, IsNoneBetweenCopies) {
  const Tensor a = floats({1, -2, std::numeric_limits<float>::quiet_NaN()});
  const TensorDifference difference = difference_between(a, copy_of(a));
  EXPECT_TRUE(difference.is_same);
  EXPECT_EQ(difference.largest, 0);
  EXPECT_EQ(difference.largest_ulps, 0);
}

TEST(TensorDifference, CountsTheNumbersBetween) {
  const TensorDifference one = difference_between(floats({1, 2}), floats({1, std::nextafter(2.0F, 3.0F)}));
  EXPECT_FALSE(one.is_same);
  EXPECT_EQ(one.largest_ulps, 1);
  EXPECT_EQ(one.largest, static_cast<double>(std::nextafter(2.0F, 3.0F)) - 2.0);
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(difference_between(floats({tiny}), floats({-tiny})).largest_ulps, 3) << "two zeros lie between";
  EXPECT_EQ(difference_between(floats({0.0F}), floats({-0.0F})).largest_ulps, 1);
  const std::vector<std::uint16_t> halves{0x3C00}, more{0x3C03};
  EXPECT_EQ(difference_between(filled(DType::f16, halves), filled(DType::f16, more)).largest_ulps, 3);
}

TEST(TensorDifference, OfIntegersIsTheirDifference) {
  const std::vector<std::int8_t> a{-128, 5}, b{127, 5};
  const TensorDifference difference = difference_between(filled(DType::i8, a), filled(DType::i8, b));
  EXPECT_EQ(difference.largest, 255);
  EXPECT_EQ(difference.largest_ulps, 255);
}

TEST(TensorDifference, IsInfiniteWhereANanMeetsANumber) {
  const TensorDifference difference =
      difference_between(floats({std::numeric_limits<float>::quiet_NaN()}), floats({1}));
  EXPECT_FALSE(difference.is_same);
  EXPECT_TRUE(std::isinf(difference.largest));
}

TEST(TensorDifference, ANanIsTheSameAsAnyOther) {
  const std::vector<std::uint16_t> nan{0x3c00, 0x7e00}, other_nan{0x3c00, 0xfe00}, and_a_number{0x3c01, 0xfe00};
  EXPECT_TRUE(difference_between(filled(DType::f16, nan), filled(DType::f16, other_nan)).is_same);
  const TensorDifference difference = difference_between(filled(DType::f16, nan), filled(DType::f16, and_a_number));
  EXPECT_FALSE(difference.is_same);
  EXPECT_EQ(difference.largest_ulps, 1) << "of the numbers alone";
}

TEST(TensorDifference, OfPackedElementsIsThatOfTheirNumbers) {
  const auto packed = [](DType dtype, std::vector<std::uint8_t> bytes) {
    return Tensor::from_bytes(Meta::tensor(dtype, {2, 4}), bytes.data());
  };
  const Tensor a = packed(DType::f4e2m1, {0x10, 0x32, 0x54, 0x76});
  EXPECT_TRUE(difference_between(a, copy_of(a)).is_same);
  const TensorDifference high = difference_between(a, packed(DType::f4e2m1, {0x10, 0x32, 0x54, 0x66}));
  EXPECT_FALSE(high.is_same);
  EXPECT_EQ(high.largest, 2) << "6 and 4";
  EXPECT_EQ(high.largest_ulps, 1);
  EXPECT_EQ(difference_between(packed(DType::i4, {0, 0, 0, 0x80}), packed(DType::i4, {0, 0, 0, 0x70})).largest, 15);
  const Tensor columns{Meta::strided(DType::f4e2m1, {2, 2}, {4, 1}), a.storage, 1};  // the last two of each row
  EXPECT_TRUE(difference_between(columns, copy_of(columns)).is_same);
  const std::uint8_t last[] = {0x32, 0x76};
  EXPECT_TRUE(difference_between(columns, Tensor::from_bytes(Meta::tensor(DType::f4e2m1, {2, 2}), last)).is_same);
}

TEST(TensorDifference, OfBlocksAndPackedWeightsIsThatOfTheirBytes) {
  Tensor a = Tensor::empty(Meta::tensor(DType::q4_1, {2, 32})), b = copy_of(a);
  EXPECT_TRUE(difference_between(a, b).is_same);
  b.data()[25] = std::byte{3};
  EXPECT_EQ(difference_between(a, b).largest, 3);
}

TEST(TensorDifference, OfKvPagesIsOfThoseThatAreMeant) {
  const Meta meta = Meta::pages({.dtype = DType::f32, .block = 2, .heads = 1, .head_dim = 3});
  const std::int64_t elements = kv_page_elements(meta.kv), pages = 3;
  Tensor a = Tensor::empty(meta, pages);
  for (std::int64_t i = 0; i < pages * elements; ++i) a.as<float>()[i] = static_cast<float>(i);
  Tensor b = copy_of(a);
  EXPECT_TRUE(difference_between(a, b).is_same);
  b.as<float>()[elements] += 2;
  EXPECT_EQ(difference_between(a, b).largest, 2);
  EXPECT_EQ(difference_between(a, b, {{0, 1}}).largest, 2);
  EXPECT_TRUE(difference_between(a, b, {{0, 2}}).is_same);
  const Tensor some = copy_of(b, {{1}});
  EXPECT_EQ(some.storage->bytes(), b.storage->bytes());
  EXPECT_TRUE(difference_between(some, b, {{1}}).is_same);
  EXPECT_FALSE(difference_between(some, b).is_same);
}

TEST(TensorDifference, LooksThroughStrides) {
  Tensor whole = Tensor::empty(Meta::tensor(DType::f32, {2, 4}));
  for (int i = 0; i < 8; ++i) whole.as<float>()[i] = static_cast<float>(i);
  const Tensor columns{Meta::strided(DType::f32, {2, 2}, {4, 1}), whole.storage, 4};  // 1 2 5 6
  Tensor packed = Tensor::empty(Meta::tensor(DType::f32, {2, 2}));
  const float values[] = {1, 2, 5, 6};
  for (int i = 0; i < 4; ++i) packed.as<float>()[i] = values[i];
  EXPECT_TRUE(difference_between(columns, packed).is_same);
  const Tensor copy = copy_of(columns);
  EXPECT_EQ(copy.meta, columns.meta);
  EXPECT_TRUE(difference_between(copy, packed).is_same);
  whole.as<float>()[5] = 9;
  EXPECT_EQ(difference_between(columns, packed).largest, 4);
}

TEST(TensorDifference, CountsPagesInTheirDtype) {
  const KvLayout layout{.dtype = DType::f32, .block = 2, .heads = 1, .head_dim = 2};
  Tensor a = Tensor::empty(Meta::pages(layout), 2), b = copy_of(a);
  b.as<float>()[9] = 0.5F;
  const TensorDifference difference = difference_between(a, b);
  EXPECT_EQ(difference.largest, 0.5);
  EXPECT_THROW(difference_between(a, floats({1})), InternalError);
}

}  // namespace weft::tensor_difference_test
