#include "kernels/strided.h"

#include <gtest/gtest.h>

namespace weft::strided_test {

TEST(HasPlainRows, HoldsForContiguousTensorsAndMatricesWhoseRowsLieFurtherApart) {
  EXPECT_TRUE(has_plain_rows(Meta::tensor(DType::f32, {2, 3, 4})));
  EXPECT_TRUE(has_plain_rows(Meta::tensor(DType::f32, {Dim::symbol("s0"), 4})));
  EXPECT_TRUE(has_plain_rows(Meta::tensor(DType::f32, {})));
  EXPECT_TRUE(has_plain_rows(Meta::strided(DType::f32, {2, 4}, {9, 1})));
  EXPECT_TRUE(has_plain_rows(Meta::strided(DType::f32, {Dim::symbol("s0"), 4}, {9, 1})));
}

TEST(HasPlainRows, DoesNotWhereRowsOverlapOrHaveGapsOrAreNotKnown) {
  EXPECT_FALSE(has_plain_rows(Meta::strided(DType::f32, {2, 4}, {3, 1}))) << "rows overlap";
  EXPECT_FALSE(has_plain_rows(Meta::strided(DType::f32, {2, 4}, {0, 1}))) << "one row for all";
  EXPECT_FALSE(has_plain_rows(Meta::strided(DType::f32, {2, 4}, {1, 2}))) << "columns";
  EXPECT_FALSE(has_plain_rows(Meta::strided(DType::f32, {2, 4}, {9, 2}))) << "every second element";
  EXPECT_FALSE(has_plain_rows(Meta::strided(DType::f32, {2, 4}, {Dim::symbol("s0"), 1})));
  EXPECT_FALSE(has_plain_rows(Meta::strided(DType::f32, {2, 3, 4}, {24, 8, 1}))) << "rank 3";
}

}  // namespace weft::strided_test
