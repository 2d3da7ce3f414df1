// The ends of token ranges, the kernel in each, and the code that equal ranges share.

#include "compiler/token_ranges.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/pipeline.h"
#include "tests/small_layer.h"

namespace weft::token_ranges_test {

// silu_and_mul by another provider, for some row counts only.
void add_kernel(Context& context, const std::string& provider, TokenRange rows) {
  Kernel kernel = *context.kernels.find("silu_and_mul", "cpu");
  kernel.provider = provider;
  kernel.rows = rows;
  context.kernels.add(std::move(kernel));
}

std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const std::vector<TokenRange>& ranges) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const TokenRange& range : ranges) pairs.emplace_back(range.lo, range.hi);
  return pairs;
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST(TokenRanges, CoverAllRowsInOneByDefault) {
  const auto context = test_context();
  EXPECT_EQ(pairs(token_ranges(*small_layer(*context), *context, 64).ranges), (Pairs{{1, 64}}));
}

TEST(TokenRanges, EndWhereKernelsOfThePriorityListAskForIt) {
  const auto context = test_context();
  add_kernel(*context, "few", {1, 4});
  const auto graph = small_layer(*context);
  EXPECT_EQ(pairs(token_ranges(*graph, *context, 64).ranges), (Pairs{{1, 64}})) << "few is in no list";
  context->priorities.set("silu_and_mul", {"few"});
  EXPECT_EQ(pairs(token_ranges(*graph, *context, 64).ranges), (Pairs{{1, 4}, {5, 64}}));
  EXPECT_EQ(pairs(token_ranges(*graph, *context, 4).ranges), (Pairs{{1, 4}}));
}

TEST(TokenRanges, EndAtTheLimitOfTheFusionOfRotationAndCacheUpdate) {
  const auto context = test_context();
  const auto graph = small_layer(*context);
  context->options.rope_kvcache_fusion_max_token_num = 256;
  EXPECT_EQ(pairs(token_ranges(*graph, *context, 64).ranges), (Pairs{{1, 64}}));
  EXPECT_EQ(pairs(token_ranges(*graph, *context, 512).ranges), (Pairs{{1, 256}, {257, 512}}));
}

TEST(TokenRanges, AreAtMostThreeUnlessTheUserAsksForMore) {
  const auto context = test_context();
  add_kernel(*context, "few", {1, 4});
  add_kernel(*context, "some", {16, 32});
  context->priorities.set("silu_and_mul", {"few", "some"});
  const auto graph = small_layer(*context);
  const TokenRanges automatic = token_ranges(*graph, *context, 64);
  EXPECT_EQ(pairs(automatic.ranges), (Pairs{{1, 4}, {5, 15}, {16, 64}}));
  EXPECT_EQ(automatic.dropped, std::vector<std::int64_t>{32});
  context->options.compile_ranges_split_points = {2, 4, 8, 32};
  context->options.compile_sizes = {"3"};
  const TokenRanges asked = token_ranges(*graph, *context, 64);
  EXPECT_EQ(pairs(asked.ranges), (Pairs{{3, 3}, {1, 2}, {3, 4}, {5, 8}, {9, 32}, {33, 64}}));
  EXPECT_EQ(range_of(asked.ranges, 3), 0u);
  EXPECT_EQ(range_of(asked.ranges, 4), 2u);
  EXPECT_THROW(range_of(asked.ranges, 65), InternalError);
}

TEST(RangeTable, GivesTheExactSizeFirstAndThenTheRange) {
  const RangeTable table({{3, 3}, {8, 8}, {64, 64}, {1, 7}, {8, 16}, {17, 64}});
  const std::vector<std::pair<std::int64_t, std::size_t>> wanted{
      {1, 3}, {2, 3}, {3, 0}, {4, 3}, {7, 3}, {8, 1}, {9, 4}, {15, 4}, {16, 4}, {17, 5}, {18, 5}, {63, 5}, {64, 2}};
  for (const auto& [rows, range] : wanted) {
    EXPECT_EQ(table.of(rows), range) << rows;
    EXPECT_EQ(range_of(table.all(), rows), range) << rows;
  }
  for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{65}, std::int64_t{-1}, INT64_MAX})
    EXPECT_THROW(table.of(rows), InternalError) << rows;
  EXPECT_THROW(RangeTable().of(1), InternalError);
  EXPECT_THROW(RangeTable({{5, 8}}).of(4), InternalError);
}

TEST(RangeTable, KnowsTheRangeAroundAnExactSize) {
  const std::vector<TokenRange> ranges{{1, 1}, {8, 8}, {1, 1}, {2, 64}};
  EXPECT_EQ(range_around(ranges, 0), &ranges[2]) << "a range of one count is not the size itself";
  EXPECT_EQ(range_around(ranges, 1), &ranges[3]);
  EXPECT_EQ(range_around(ranges, 2), nullptr);
  EXPECT_EQ(range_around(ranges, 3), nullptr);
}

TEST(CompileRanges, ChooseOncePerRangeAndKeepTheRefusals) {
  const auto context = kernel_context();
  add_kernel(*context, "few", {1, 4});
  context->priorities.set("silu_and_mul", {"few"});
  const auto graph = small_layer(*context);
  const CompiledRanges compiled = compile_ranges(*graph, *context, token_ranges(*graph, *context, 64).ranges, {});
  ASSERT_EQ(compiled.plans.size(), 2u);
  EXPECT_NE(compiled.plans[0], compiled.plans[1]);
  const auto choice = [&](std::size_t range) {
    for (const PassRecord& pass : compiled.records[range].passes)
      for (const NodeChoice& choice : pass.result.choices)
        if (choice.op == "silu_and_mul") return choice.choice;
    return Choice{};
  };
  EXPECT_EQ(choice(0).provider, "few");
  EXPECT_EQ(choice(1).provider, "cpu");
  ASSERT_EQ(choice(1).refused.size(), 1u);
  EXPECT_EQ(choice(1).refused[0].reason, "it is for 1 to 4 rows, not for 5 to 64");
}

TEST(CompileRanges, UnderBatchInvarianceNoKernelIsChosenByTheRows) {
  const auto context = test_context();
  add_kernel(*context, "few", {1, 4});
  context->priorities.set("silu_and_mul", {"few"});
  context->options.batch_invariant = true;
  const std::vector<Candidate> candidates =
      list_candidates(context->kernels, context->priorities, "silu_and_mul", true);
  EXPECT_EQ(candidates.at(0).refusal, "it is for some counts of rows alone, so the batch would choose the kernel");
  const auto graph = small_layer(*context);
  const CompiledRanges compiled = compile_ranges(*graph, *context, {{1, 4}, {5, 64}}, {});
  EXPECT_EQ(compiled.plans[0], compiled.plans[1]);
}

TEST(CompileRanges, SharesOnePlanBetweenEqualRanges) {
  const auto context = test_context();
  add_kernel(*context, "middle", {5, 16});
  context->priorities.set("silu_and_mul", {"middle"});
  const auto graph = small_layer(*context);
  const CompiledRanges compiled = compile_ranges(*graph, *context, token_ranges(*graph, *context, 64).ranges, {});
  ASSERT_EQ(compiled.plans.size(), 3u);
  EXPECT_EQ(compiled.plans[0], compiled.plans[2]) << "1 to 4 and 17 to 64 run the same kernels";
  EXPECT_NE(compiled.plans[0], compiled.plans[1]);
  EXPECT_EQ(compiled.plans[0]->bounds.at("s0"), (Interval{1, 64}));
  EXPECT_EQ(compiled.plans[1]->bounds.at("s0"), (Interval{5, 16}));
}

}  // namespace weft::token_ranges_test
