// A thousand runs allocate nothing, however they are captured: every operator new of this program counts, but under
// sanitizers, which have their own.

#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "runtime/replay.h"
#include "tests/counted_allocations.h"
#include "tests/small_layer.h"

namespace weft::replay_allocation_test {

struct StepInputs {
  std::vector<Tensor> inputs;  // to be moved into the replay
  bool is_decode = false;
};

// Steps of 1 to 8 rows; those of one row are decode steps.
std::vector<StepInputs> some_runs(const Graph& traced, int count) {
  std::vector<std::vector<Tensor>> by_rows;
  for (int rows = 1; rows <= 8; ++rows) by_rows.push_back(layer_inputs(traced, rows).tensors);
  std::vector<StepInputs> runs;
  for (int run = 0; run < count; ++run) {
    const auto row = static_cast<std::size_t>(run * 5 % 8);
    runs.push_back({by_rows[row], row == 0});
  }
  return runs;
}

TEST(ReplayAllocation, RunsWithOtherTokenCountsAllocateAndLookUpNothingInAnyMode) {
  const auto context = test_context();
  const auto traced = small_layer(*context);
  const auto plan = compile(*traced->clone(), *context, {1, 8}, {}).plan;
  constexpr int kRuns = 1000;
  for (const ReplayMode mode : {ReplayMode::none, ReplayMode::piecewise, ReplayMode::full, ReplayMode::full_decode_only,
                                ReplayMode::full_and_piecewise}) {
    SCOPED_TRACE(replay_mode_text(mode));
    std::vector<StepInputs> runs = some_runs(*traced, kRuns);
    Replay replay(plan, *context->threads);
    for (const ReplayMode simple : {decode_mode(mode), mixed_mode(mode)}) replay.capture(simple);
    const std::int64_t before = counted_allocations;
    for (StepInputs& run : runs) {
      for (std::size_t i = 0; i < run.inputs.size(); ++i) replay.bind(i, std::move(run.inputs[i]));
      replay.run(run.is_decode ? decode_mode(mode) : mixed_mode(mode));
      replay.result(0);
    }
    EXPECT_EQ(counted_allocations - before, 0);
    EXPECT_EQ(replay.counts().look_ups, 0);
    EXPECT_EQ(replay.counts().allocations, 0);
    EXPECT_EQ(replay.counts().runs, kRuns);
    EXPECT_GE(replay.counts().resolved, mode == ReplayMode::full ? kRuns - 1 : 0);

    // The same counters count separate accesses to a view.
    const std::int64_t ran = counted_allocations;
    const Tensor seen = replay.tensor(plan->results[0]);
    EXPECT_EQ(seen.meta, replay.result(0).meta);
    EXPECT_EQ(seen.data(), replay.result(0).data());
    EXPECT_EQ(counted_allocations - ran > 0, kCountsAllocations);
    EXPECT_EQ(replay.counts().look_ups, 1);
    EXPECT_EQ(replay.counts().allocations, 1);
  }
}

}  // namespace weft::replay_allocation_test
