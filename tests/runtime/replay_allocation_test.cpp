// A thousand replays allocate nothing: every operator new of this program counts, but under sanitizers, which have
// their own.

#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "runtime/replay.h"
#include "tests/small_layer.h"

namespace weft::replay_allocation_test {

std::atomic<std::int64_t> allocations{0};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;

}  // namespace weft::replay_allocation_test
#else
constexpr bool kCounts = true;

void* allocate(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes == 0 ? 1 : bytes)
                                                        : std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace weft::replay_allocation_test

// The array and sized forms of the library call these.
void* operator new(std::size_t bytes) {
  return weft::replay_allocation_test::allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return weft::replay_allocation_test::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

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
  const std::int64_t resolved = replay.counts().resolved, before = allocations;
  for (int i = 0; i < kRuns; ++i) run(inputs[static_cast<std::size_t>(i)]);
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(replay.counts().look_ups, 0);
  EXPECT_EQ(replay.counts().allocations, 0);
  EXPECT_EQ(replay.counts().runs, kRuns + 1);
  EXPECT_GE(replay.counts().resolved - resolved, kRuns - 1);

  // The same counters see what is not captured.
  const std::int64_t replayed = allocations;
  replay.run(ReplayMode::none);
  EXPECT_EQ(allocations - replayed > 0, kCounts);
  EXPECT_GT(replay.counts().look_ups, 0);
  EXPECT_GT(replay.counts().allocations, 0);
}

}  // namespace weft::replay_allocation_test
