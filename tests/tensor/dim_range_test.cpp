#include <gtest/gtest.h>

#include "tensor/dim.h"

namespace weft::dim_range_test {

const Dim s0 = Dim::symbol("s0");
const Dim s1 = Dim::symbol("s1");
const Bounds kBounds = {{"s0", {1, 512}}, {"s1", {0, 10}}};

TEST(DimRange, FollowsArithmetic) {
  EXPECT_EQ(Dim(7).range({}), (Interval{7, 7}));
  EXPECT_EQ(s0.range({}), (Interval{0, INT64_MAX}));
  EXPECT_EQ((s0 * 2 + 16).range(kBounds), (Interval{18, 1040}));
  EXPECT_EQ((s0 - s1).range(kBounds), (Interval{-9, 512}));
  EXPECT_EQ((s0 * s1).range(kBounds), (Interval{0, 5120}));
  EXPECT_EQ(align(s0, 4).range(kBounds), (Interval{4, 512}));
  EXPECT_EQ(floordiv(s0, 128).range(kBounds), (Interval{0, 4}));
  EXPECT_EQ((s0 * s0).range({{"s0", {-2, 3}}}), (Interval{0, 9}));
}

TEST(DimRange, SaturatesAtTheEndsOf64Bits) {
  EXPECT_EQ((s0 * 2).range({}), (Interval{0, INT64_MAX}));
  EXPECT_EQ((Dim(0) - s0 * s0 * s0 * s0).range({}), (Interval{INT64_MIN, 0}));
  EXPECT_EQ((s0 * s0 * s0 * s0 + s1 * s1 * s1 * s1).range({}), (Interval{0, INT64_MAX}));
  EXPECT_EQ((s0 * s0 * s0 * s0 - s1 * s1 * s1 * s1).range({}), (Interval{INT64_MIN, INT64_MAX}));
  // For any divisor, an infinite bound stays infinite.
  EXPECT_EQ(floordiv(s0 * s0 * s0, INT64_MAX).range({}), (Interval{0, INT64_MAX}));
  const Dim powers = s0 * s0 * s0 - s1 * s1 * s1;
  const Interval range = powers.range({{"s0", {INT64_MAX - 1, INT64_MAX}}, {"s1", {INT64_MAX - 1, INT64_MAX}}});
  EXPECT_LE(range.lo, 0);
  EXPECT_GE(range.hi, 0);
}

TEST(DimRange, KeepsTheTieBetweenAFunctionAndItsArgument) {
  EXPECT_EQ((align(s0, 4) - s0).range(kBounds), (Interval{0, 3}));
  EXPECT_EQ((s0 - floordiv(s0, 4) * 4).range(kBounds), (Interval{0, 3}));
  EXPECT_EQ(compare_less_equal(s0, align(s0, 16), {}), Truth::yes);
  EXPECT_EQ(compare_less_equal(align(s0, 16), s0 + 15, {}), Truth::yes);
  EXPECT_EQ(compare_less_equal(floordiv(s0, 3), s0, {}), Truth::yes);
  EXPECT_EQ(compare_less_equal(ceildiv(s0, 3), floordiv(s0, 3) + 1, {}), Truth::yes);
  EXPECT_EQ(compare_less_equal(s0 * s1, align(s0, 4) * s1, {}), Truth::yes);
}

TEST(DimCompare, EqualHasThreeAnswers) {
  EXPECT_EQ(compare_equal(s0 + s1, s1 + s0, {}), Truth::yes);
  EXPECT_EQ(compare_equal(s0, s0 + 1, {}), Truth::no);
  EXPECT_EQ(compare_equal(s0, s1, {}), Truth::unknown);
  EXPECT_EQ(compare_equal(s0, s1 + 600, kBounds), Truth::no);
  EXPECT_EQ(compare_equal(s0 * 2, s1 * 2 + 1, {}), Truth::no);
  EXPECT_EQ(compare_equal(s0, 3, {{"s0", {3, 3}}}), Truth::yes);
  EXPECT_EQ(compare_equal(s0, 1, {{"s0", {0, 8192}}}), Truth::unknown);
  EXPECT_EQ(compare_equal(s0, 0, {{"s0", {1, 8192}}}), Truth::no);
}

TEST(DimCompare, LessEqualHasThreeAnswers) {
  EXPECT_EQ(compare_less_equal(s0, 512, kBounds), Truth::yes);
  EXPECT_EQ(compare_less_equal(s0, 511, kBounds), Truth::unknown);
  EXPECT_EQ(compare_less_equal(s0 + 512, s0 * 1, kBounds), Truth::no);
  EXPECT_EQ(compare_less_equal(0, s0, {}), Truth::yes);
  EXPECT_EQ(compare_less_equal(s0 + 1, 0, {}), Truth::no);
}

TEST(DimCompare, DoesNotKnowWhatLeaves64Bits) {
  const Dim far = s0 + INT64_MAX;
  EXPECT_EQ(compare_equal(far, s1 + INT64_MIN, {}), Truth::unknown);
  EXPECT_EQ(compare_less_equal(far, s1 + INT64_MIN, {}), Truth::unknown);
}

}  // namespace weft::dim_range_test
