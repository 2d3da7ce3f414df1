#include "kernels/cuda/lib/group_launch.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/cuda/device/memory.cuh"
#include "tests/tensor/random_source.h"
#include "tests/thrown_message.h"

namespace weft::group_launch_test {

using namespace cuda;

constexpr std::uint32_t kMost = 0x7fffffff;

TEST(GroupLaunch, DividesByAnyNumberAsADivisionDoes) {
  RandomSource random(5);
  std::vector<std::uint32_t> divisors = {1, 2, 3, 5, 7, 64, 65535, 65536, 65537, 1000003, kMost - 1, kMost};
  for (int i = 0; i < 2000; ++i)
    divisors.push_back(static_cast<std::uint32_t>(random.integer(1, std::int64_t{1} << random.integer(1, 30))));
  for (const std::uint32_t divisor : divisors) {
    const Divisor by = divisor_of(divisor);
    for (const std::uint32_t multiple :
         {0u, 1u, kMost / divisor, static_cast<std::uint32_t>(random.integer(0, kMost)) / divisor})
      for (const std::int64_t beside : {-1, 0, 1}) {
        const std::int64_t dividend = static_cast<std::int64_t>(multiple) * divisor + beside;
        if (dividend < 0 || dividend > kMost) continue;
        EXPECT_EQ(quotient(static_cast<std::uint32_t>(dividend), by), dividend / divisor)
            << dividend << " by " << divisor;
      }
  }
}

TEST(GroupLaunch, CountsPlacesBeyondFourThousandMillion) {
  EXPECT_EQ(product(0xffffffffu, 0xffffffffu), 0xfffffffe00000001u);
}

TEST(GroupLaunch, StandsAlongTheSideWhereScalesLieCloser) {
  GroupOrder order;
  const GroupCounts counts{.rows = 100, .groups = 3, .group_size = 128};
  EXPECT_EQ(plan_groups("k", counts, {nullptr, 3, 1}, order).blocks, 100u);
  EXPECT_FALSE(order.along_rows);
  EXPECT_EQ(plan_groups("k", counts, {nullptr, 1, 100}, order).blocks, 21u);
  EXPECT_TRUE(order.along_rows);
  EXPECT_EQ(order.slices.divisor, 7u);
}

TEST(GroupLaunch, RefusesMoreBlocksThanALaunchHas) {
  GroupOrder order;
  EXPECT_NE(message_of([&] {
              plan_groups("k", {.rows = std::int64_t{1} << 31, .groups = 1}, {nullptr, 1, 1}, order);
            }).find("would be 2147483648 blocks"),
            std::string::npos);
}

}  // namespace weft::group_launch_test
