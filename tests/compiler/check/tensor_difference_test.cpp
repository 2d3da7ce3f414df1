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
  EXPECT_TRUE(difference.equal_bits);
  EXPECT_EQ(difference.largest, 0);
  EXPECT_EQ(difference.largest_ulps, 0);
}

TEST(TensorDifference, CountsTheNumbersBetween) {
  const TensorDifference one = difference_between(floats({1, 2}), floats({1, std::nextafter(2.0F, 3.0F)}));
  EXPECT_FALSE(one.equal_bits);
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
  EXPECT_FALSE(difference.equal_bits);
  EXPECT_TRUE(std::isinf(difference.largest));
}

TEST(TensorDifference, OfKvPagesIsOfThoseThatAreMeant) {
  const Meta meta = Meta::pages({.dtype = DType::f32, .block = 2, .heads = 1, .head_dim = 3});
  const std::int64_t elements = kv_page_elements(meta.kv), pages = 3;
  Tensor a = Tensor::empty(meta, pages);
  for (std::int64_t i = 0; i < pages * elements; ++i) a.as<float>()[i] = static_cast<float>(i);
  Tensor b = copy_of(a);
  EXPECT_TRUE(difference_between(a, b).equal_bits);
  b.as<float>()[elements] += 2;
  EXPECT_EQ(difference_between(a, b).largest, 2);
  EXPECT_EQ(difference_between(a, b, {{0, 1}}).largest, 2);
  EXPECT_TRUE(difference_between(a, b, {{0, 2}}).equal_bits);
  const Tensor some = copy_of(b, {{1}});
  EXPECT_EQ(some.storage->bytes(), b.storage->bytes());
  EXPECT_TRUE(difference_between(some, b, {{1}}).equal_bits);
  EXPECT_FALSE(difference_between(some, b).equal_bits);
}

TEST(TensorDifference, LooksThroughStrides) {
  Tensor whole = Tensor::empty(Meta::tensor(DType::f32, {2, 4}));
  for (int i = 0; i < 8; ++i) whole.as<float>()[i] = static_cast<float>(i);
  const Tensor columns{Meta::strided(DType::f32, {2, 2}, {4, 1}), whole.storage, 4};  // 1 2 5 6
  Tensor packed = Tensor::empty(Meta::tensor(DType::f32, {2, 2}));
  const float values[] = {1, 2, 5, 6};
  for (int i = 0; i < 4; ++i) packed.as<float>()[i] = values[i];
  EXPECT_TRUE(difference_between(columns, packed).equal_bits);
  const Tensor copy = copy_of(columns);
  EXPECT_EQ(copy.meta, columns.meta);
  EXPECT_TRUE(difference_between(copy, packed).equal_bits);
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
