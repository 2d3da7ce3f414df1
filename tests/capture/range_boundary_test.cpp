// A boundary agrees with its condition at every size of the range.

#include "capture/range_boundary.h"

#include <gtest/gtest.h>

namespace weft::range_boundary_test {

const Dim s = Dim::symbol("s");
const Bounds kBounds{{"s", {1, 60}}, {"t", {1, 60}}};

// For every size: compares the condition's value with the range found around it. Returns the number of sizes with a
// range.
int sizes_with_boundary(const DimCondition& condition) {
  int found = 0;
  for (std::int64_t size = 1; size <= 60; ++size) {
    const bool holds = condition.holds({{"s", size}});
    const DimCondition held = holds ? condition : condition.negated();
    const auto boundary = range_boundary(held, kBounds, {{"s", size}});
    if (!boundary) continue;
    ++found;
    EXPECT_EQ(boundary->symbol, "s");
    for (std::int64_t other = 1; other <= 60; ++other)
      EXPECT_EQ(other >= boundary->range.lo && other <= boundary->range.hi, condition.holds({{"s", other}}) == holds)
          << condition.text() << " at " << size << ", " << other;
  }
  return found;
}

TEST(RangeBoundary, ComparisonsAreBoundaries) {
  for (const DimCondition& condition :
       {s > 16, s >= 16, s<16, s <= 16, s * Dim(3) + Dim(2) <= Dim(50), align(s, 8)> 16,
        Dim(64) - s<10, ceildiv(s, 16) <= Dim(2), floordiv(s, 7) * Dim(2)> 5, s * s < 200})
    EXPECT_EQ(sizes_with_boundary(condition), 60) << condition.text();
}

TEST(RangeBoundary, ASizeIsARangeAndWhatIsLeftBesideItIsOneAtTheEnds) {
  EXPECT_EQ(sizes_with_boundary(equal(s, 16)), 1) << "sizes on both sides of it are no range";
  EXPECT_EQ(sizes_with_boundary(equal(s, 1)), 60);
  EXPECT_EQ(sizes_with_boundary(not_equal(s, 60)), 60);
}

TEST(RangeBoundary, AnswersThatChangeToAndFroHaveNone) {
  EXPECT_EQ(sizes_with_boundary(equal(align(s, 8), s)), 0);
  EXPECT_EQ(sizes_with_boundary(s - floordiv(s, 10) * Dim(10) < 5), 0);
}

TEST(RangeBoundary, SeveralSymbolsHaveNone) {
  EXPECT_FALSE(range_boundary(s < Dim::symbol("t"), kBounds, {{"s", 1}, {"t", 2}}));
}

}  // namespace weft::range_boundary_test
