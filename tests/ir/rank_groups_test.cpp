#include "ir/rank_groups.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/parse.h"
#include "tests/thrown_message.h"

namespace weft::rank_groups_test {

std::map<std::string, std::int64_t> groups_of(const std::string& nodes) {
  const OpTable ops = make_op_table();
  return rank_groups(*parse_graph("graph g(%x: f32[4, 8]) stage=pure {\n" + nodes + "  return %y\n}", ops));
}

TEST(RankGroupsOfAGraph, AreThoseOfSeveralRanks) {
  EXPECT_TRUE(groups_of("  %y = neg(%x)\n").empty());
  EXPECT_TRUE(groups_of("  %y = all_reduce(%x, world_size=1, group_name=tp)\n").empty());
  const std::map<std::string, std::int64_t> wanted = {{"dp", 4}, {"tp:0", 2}};
  EXPECT_EQ(groups_of("  %a = all_gather(%x, dim=0, world_size=2, group_name=\"tp:0\")\n"
                      "  %b = reduce_scatter(%a, dim=0, world_size=4, group_name=dp)\n"
                      "  %y = rank_slice(%b, dim=1, world_size=2, group_name=\"tp:0\")\n"),
            wanted);
}

TEST(RankGroupsOfAGraph, HaveOneSizeEach) {
  EXPECT_EQ(
      message_of([&] {
        groups_of(
            "  %a = all_reduce(%x, world_size=2, group_name=tp)\n  %y = all_reduce(%a, world_size=4, group_name=tp)\n");
      }),
      "[all_reduce] group tp has 2 ranks elsewhere in the graph, but here 4 (%y)");
}

// A rule of the headers that other code relies on.
TEST(RankGroupsOfAGraph, AreNamedByOpsThatSayHowManyRanksThereAre) {
  int found = 0;
  const OpTable ops = make_op_table();
  for (const auto& [name, op] : ops.all()) {
    EXPECT_EQ(op.schema.parameter_index("world_size") >= 0, op.schema.parameter_index("group_name") >= 0) << name;
    found += is_over_ranks(op) ? 1 : 0;
  }
  EXPECT_GE(found, 4);
}

}  // namespace weft::rank_groups_test
