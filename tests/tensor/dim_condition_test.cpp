// Comparisons of dims: a proved answer is true at every size.

#include "tensor/dim_condition.h"

#include <gtest/gtest.h>

#include "tests/thrown_message.h"

namespace weft::dim_condition_test {

const Dim s = Dim::symbol("s");

TEST(DimCondition, WhatIsShownHoldsAtEverySize) {
  int shown = 0;
  for (std::int64_t bound = -2; bound <= 12; ++bound)
    for (const DimCondition& condition :
         {s<bound, s <= bound, s> bound, s >= bound, equal(s, bound), not_equal(s, bound), align(s, 4) < bound,
          equal(s * Dim(2), bound), s * Dim(3) - Dim(4) <= bound}) {
      const Truth truth = condition.truth({{"s", {3, 8}}});
      const Truth opposite = condition.negated().truth({{"s", {3, 8}}});
      shown += truth == Truth::unknown ? 0 : 1;
      EXPECT_EQ(truth == Truth::unknown, opposite == Truth::unknown) << condition.text();
      for (std::int64_t size = 3; size <= 8; ++size) {
        const bool holds = condition.holds({{"s", size}});
        EXPECT_NE(condition.negated().holds({{"s", size}}), holds) << condition.text();
        EXPECT_NE(truth, holds ? Truth::no : Truth::yes) << condition.text() << " at " << size;
      }
    }
  EXPECT_GT(shown, 60);
}

TEST(DimCondition, Texts) {
  EXPECT_EQ((s > 16).text(), "16 < s");
  EXPECT_EQ((s >= 16).text(), "16 <= s");
  EXPECT_EQ((s > 16).negated().text(), "s <= 16");
  EXPECT_EQ(equal(s, 4).text(), "s == 4");
  EXPECT_EQ(equal(s, 4).negated().text(), "s != 4");
}

TEST(DimCondition, NeedsTheSizesOfItsSymbols) {
  EXPECT_NE(message_of([] { (s < 4).holds({}); }), "");
}

}  // namespace weft::dim_condition_test
