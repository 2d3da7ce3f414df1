// The number of blocks of attention as a function of sizes; and that it does not change any row.

#include "kernels/cuda/lib/attention_plan.h"

#include <gtest/gtest.h>

#include "compiler/run/sample_call.h"
#include "tests/cuda/attention_case.h"
#include "tests/cuda/cuda_context.h"

namespace weft::attention_plan_test {

using namespace cuda;

TEST(AttentionPlan, SharesUntilTheDeviceIsFullOnceOrAWholeNumberOfTimes) {
  struct Case {
    std::int64_t tiles, segments, slots, sharers;
  };
  const Case cases[] = {
      // A tile is one segment, or has none.
      {1, 1, 528, 1},
      {1, 0, 528, 1},
      // Few tiles: a block for each segment, or the largest number of blocks for a tile, reduced where more do not pay.
      {8, 16, 528, 16},
      {1, 64, 528, 64},
      {1, 512, 528, 52},
      // One full round: 4 x 128 of 528 blocks; 8 would take two rounds of half the time.
      {128, 16, 528, 4},
      {64, 16, 528, 8},
      {264, 16, 528, 2},
      // Full already.
      {512, 16, 528, 1},
      {528, 16, 528, 1},
      {1056, 512, 528, 1},
      // 320 of 528 leave slots idle, 960 of 1056 few. 600 take as long as 1056, 2400 not as long as four times that.
      {320, 16, 528, 3},
      {600, 16, 528, 4},
      // Never more than there are segments.
      {600, 2, 528, 2},
      {600, 1, 528, 1},
      {3, 5, 1000, 5},
  };
  for (const Case& one : cases)
    EXPECT_EQ(count_sharers(one.tiles, one.segments, one.slots), one.sharers)
        << one.tiles << " tiles of " << one.segments << " segments in " << one.slots;
}

// Llama-3-8B's heads: four queries to each of eight KV heads.
AttentionSizes decode(std::int64_t sequences, std::int64_t table_tokens) {
  return {.pages = DType::bf16,
          .tokens = sequences,
          .sequences = sequences,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .table_tokens = table_tokens,
          .partial_bytes = kMostPartialBytes,
          .multiprocessors = 132};
}

TEST(AttentionPlan, GivesEveryBlockOfDecodedTokensRows) {
  const AttentionPlan plan = plan_attention(decode(16, 4096), AttentionDesign::multiply_adds);
  EXPECT_EQ(plan.kernel, "attention_bf16_128_decode");
  EXPECT_EQ(plan.token_tiles, 1u);
  EXPECT_EQ(plan.sharers, 4u);
  EXPECT_EQ(plan.shape.blocks, 16u * 4);
  EXPECT_EQ(plan.shape.block_rows, 8u);
  EXPECT_GE(plan.room, 16u) << "sequences as long as the table are not shared";
  EXPECT_EQ(plan.finish, "finish_attention_128");
}

TEST(AttentionPlan, LeavesTheFinishOutWhereABlockHasAWholeSequence) {
  for (const AttentionSizes& sizes : {decode(64, 4096), decode(66, 1 << 17), decode(1, 256)}) {
    const AttentionPlan plan = plan_attention(sizes, AttentionDesign::multiply_adds);
    EXPECT_EQ(plan.sharers, 1u);
    EXPECT_EQ(plan.finish, "");
  }
  AttentionSizes without_room = decode(1, 4096);
  without_room.partial_bytes = 2 * 32 * attention_partial_bytes(128) - 1;
  EXPECT_EQ(plan_attention(without_room, AttentionDesign::multiply_adds).sharers, 1u);
  ++without_room.partial_bytes;
  EXPECT_EQ(plan_attention(without_room, AttentionDesign::multiply_adds).sharers, 2u);
}

TEST(AttentionPlan, FollowsTheDevice) {
  AttentionSizes sizes = decode(16, 4096);
  for (const auto& [multiprocessors, sharers] : {std::pair{16, 1u}, {64, 2u}, {108, 3u}, {132, 4u}, {264, 8u}}) {
    sizes.multiprocessors = multiprocessors;
    EXPECT_EQ(plan_attention(sizes, AttentionDesign::multiply_adds).sharers, sharers) << multiprocessors;
  }
}

// Tiles of a token if there are fewer of them than tiles of a sequence, which need one more each.
TEST(AttentionPlan, NumbersTilesByWhatTakesFewer) {
  const auto tiles = [](std::int64_t tokens, std::int64_t sequences, std::int64_t group) {
    const AttentionPlan plan = plan_attention({.tokens = tokens,
                                               .sequences = sequences,
                                               .heads = group,
                                               .kv_heads = 1,
                                               .head_dim = 64,
                                               .table_tokens = 256,
                                               .multiprocessors = 132},
                                              AttentionDesign::multiply_adds);
    return std::pair{plan.shape.blocks, plan.token_tiles};
  };
  EXPECT_EQ(tiles(8, 8, 4), (std::pair{8u, 1u}));
  EXPECT_EQ(tiles(8, 8, 3), (std::pair{8u, 1u}));
  EXPECT_EQ(tiles(8, 8, 36), (std::pair{24u, 3u}));
  EXPECT_EQ(tiles(100, 1, 3), (std::pair{10u, 0u}));
  EXPECT_EQ(tiles(6, 4, 32), (std::pair{6u, 1u}));
}

// Sequences with no row of the step, one or several; the total number of rows is that of sequences.
TEST(AttentionPlan, HasTheRowsOfStepsThatAreNotATokenASequence) {
  const auto context = cuda_context();
  for (const int group : {1, 3, 4, 5}) {
    const AttentionCase one{{.dtype = DType::f16, .block = 16, .heads = 2, .head_dim = 64},
                            group,
                            DType::f32,
                            {{2, 300}, {1, 70}, {0, 20}, {3, 9}, {0, 16}, {0, 40}}};
    const SampleCall call = one.call(*context);
    const Tensor wanted = meaning_of(*context, "attention", call.operands, call.attributes)[0];
    for (const std::size_t scratch : {std::size_t{0}, kAttentionScratch})
      EXPECT_EQ(difference(wanted, attend(*context, call.operands, call.attributes, scratch),
                           context->ops.at("attention").tolerance(one.query)),
                "")
          << group;
  }
}

TEST(AttentionPlan, ShowsInNoRow) {
  const auto context = cuda_context();
  const AttentionCase one{
      {.dtype = DType::f16, .block = 16, .heads = 1, .head_dim = 64}, 3, DType::f32, {{1, 1500}, {1, 20}, {1, 700}}};
  const SampleCall call = one.call(*context);
  const Tensor alone = attend(*context, call.operands, call.attributes, 0);
  for (const int multiprocessors : {1, 2, 3, 132}) {
    context->device.multiprocessors = multiprocessors;
    context->kernels.prepare(context->device);
    EXPECT_EQ(difference(alone, attend(*context, call.operands, call.attributes, kAttentionScratch), {}, true), "")
        << multiprocessors;
  }
}

}  // namespace weft::attention_plan_test
