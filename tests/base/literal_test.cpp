#include "base/literal.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr char kOnce[] = "epsilon";
constexpr char kAgain[] = "epsilon";

TEST(Literal, IsTheSameAsAnotherOfTheSameText) {
  EXPECT_TRUE(Literal(kOnce) == Literal(kOnce));
  ASSERT_NE(static_cast<const void*>(kOnce), static_cast<const void*>(kAgain));
  EXPECT_TRUE(Literal(kOnce) == Literal(kAgain));
  EXPECT_FALSE(Literal("epsilo") == Literal(kOnce));
  EXPECT_FALSE(Literal("epsilon2") == Literal(kOnce));
  EXPECT_EQ(std::string_view(Literal(kOnce)), "epsilon");
}

}  // namespace
}  // namespace weft
