#include "kernels/cuda/lib/row_launch.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/thrown_message.h"

namespace weft::row_launch_test {

using namespace cuda;

TEST(RowLaunch, HasABlockARow) {
  EXPECT_EQ(plan_rows(70000).blocks, 70000u);
  EXPECT_EQ(plan_rows(1).threads, 256u);
}

TEST(RowLaunch, CutsRowsOfSiluAndMulIntoBlocksOf16BytesAThread) {
  for (const auto& [dtype, slices] : {std::pair{DType::bf16, 3u}, {DType::f32, 5u}}) {
    SiluAndMulArguments arguments{.rows = 7, .columns = 4608};
    const LaunchShape shape = plan_silu_and_mul("k", dtype, false, arguments);
    EXPECT_EQ(shape.blocks, 7 * slices);
    EXPECT_EQ(shape.threads, 256u);
    EXPECT_EQ(arguments.slices.divisor, slices);
    EXPECT_EQ(arguments.tiles, 0u);
  }
}

TEST(RowLaunch, ReachesTheRowsAndGroupsThatTilesOfScalesHaveBeyondThoseOfX) {
  SiluAndMulArguments arguments{.rows = 129, .columns = 2048 + 16};
  EXPECT_EQ(plan_silu_and_mul("k", DType::bf16, true, arguments).blocks, 2u * 256);
  EXPECT_EQ(arguments.tiles, 33u);
}

TEST(RowLaunch, HasAThreadForEachUnit) {
  GatherRowsArguments arguments;
  EXPECT_EQ(plan_gather_rows("k", 3, 100, arguments).blocks, 2u);
  EXPECT_EQ(arguments.rows, 3u);
  EXPECT_EQ(arguments.units_of_row.divisor, 100u);
}

TEST(RowLaunch, RefusesMoreThanALaunchHas) {
  SiluAndMulArguments silu{.rows = 1u << 30, .columns = 4096};
  EXPECT_EQ(missing_part(message_of<UserError>([&] { plan_silu_and_mul("k", DType::bf16, false, silu); }),
                         {"[k] 1073741824 rows", "4096 columns"}),
            "");
  GatherRowsArguments gather;
  EXPECT_EQ(missing_part(message_of<UserError>([&] { plan_gather_rows("k", (std::int64_t{1} << 32) + 1, 2, gather); }),
                         {"[k] 4294967297 rows", "2 units"}),
            "");
}

}  // namespace weft::row_launch_test
