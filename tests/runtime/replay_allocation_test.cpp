// A thousand replays allocate nothing: every operator new of this program counts, but under sanitizers, which have
// their own.

#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "runtime/replay.h"
#include "tests/counted_allocations.h"
#include "tests/small_layer.h"

namespace weft::replay_allocation_test {

// Inputs of the layer for `runs` runs of 1 to 8 rows, to be moved into the replay.
std::vector<std::vector<Tensor>> inputs_of_runs(const Graph& traced, int runs) {
  std::vector<std::vector<Tensor>> by_rows, inputs;
  for (int rows = 1; rows <= 8; ++rows) by_rows.push_back(layer_inputs(traced, rows).tensors);
  for (int run = 0; run < runs; ++run) inputs.push_back(by_rows[static_cast<std::size_t>(run * 5 % 8)]);
  return inputs;
}

TEST(ReplayAllocation, ReplaysWithOtherTokenCountsAllocateAndLookUpNothing) {
  const auto context = test_context();
  const auto traced = small_layer(*context);
  const auto plan = compile(*traced->clone(), *context, {1, 8}, {}).plan;
  constexpr int kRuns = 1000;
  std::vector<std::vector<Tensor>> inputs = inputs_of_runs(*traced, kRuns + 1);
  Replay replay(plan, *context->threads);
  const auto run = [&](std::vector<Tensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) replay.bind(i, std::move(tensors[i]));
    replay.run();
  };
  run(inputs.back());
  const std::int64_t resolved = replay.counts().resolved, before = counted_allocations;
  for (int i = 0; i < kRuns; ++i) run(inputs[static_cast<std::size_t>(i)]);
  EXPECT_EQ(counted_allocations - before, 0);
  EXPECT_EQ(replay.counts().look_ups, 0);
  EXPECT_EQ(replay.counts().allocations, 0);
  EXPECT_EQ(replay.counts().runs, kRuns + 1);
  EXPECT_GE(replay.counts().resolved - resolved, kRuns - 1);

  // The same counters see what is not captured.
  const std::int64_t replayed = counted_allocations;
  replay.run(ReplayMode::none);
  EXPECT_EQ(counted_allocations - replayed > 0, kCountsAllocations);
  EXPECT_GT(replay.counts().look_ups, 0);
  EXPECT_GT(replay.counts().allocations, 0);
}

}  // namespace weft::replay_allocation_test
