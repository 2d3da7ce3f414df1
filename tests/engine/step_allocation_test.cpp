// What a step allocates is its own small arrays: as many in a model of many layers as in one of few, and no more in a
// late step than in an early one. Only the first makes more.

#include <algorithm>
#include <cstdio>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "engine/open_checkpoint.h"
#include "tests/base/temporary_folder.h"
#include "tests/counted_allocations.h"
#include "tests/engine/tiny_model.h"

namespace weft::step_allocation_test {

// By step of a request of 3 tokens that is given 60 more: the calls of operator new. The weights are zeros, so that
// every model gives the same tokens.
std::vector<std::int64_t> allocations_of_steps(const TemporaryFolder& folder, int layers) {
  const ModelRegistry models = make_model_registry();
  const std::string path = write_config_only(folder, "llama", {{"num_hidden_layers", layers}});
  Options options;
  options.load_format = "dummy";
  options.forbid_lazy = true;
  options.threads = 2;
  Engine engine(make_context(options), open_checkpoint(path, options, models), models);
  engine.add({1, 2, 3}, {.max_tokens = 60, .ignore_end = true});
  std::vector<std::int64_t> counts;
  while (!engine.is_idle()) {
    const std::int64_t before = counted_allocations;
    const std::size_t events = engine.step().size();
    counts.push_back(counted_allocations - before);
    EXPECT_EQ(events, 1u);
  }
  return counts;
}

// Arrays of the step and of its one request; tensors of them; the event that comes of it.
constexpr std::int64_t kMostInAStep = 40;

TEST(StepAllocation, IsTheSameForAnyNumberOfLayersAndInEveryStep) {
  const TemporaryFolder folder;
  std::vector<std::int64_t> few = allocations_of_steps(folder, 2), many = allocations_of_steps(folder, 12);
  ASSERT_EQ(few.size(), 60u);
  if (!kCountsAllocations) return;
  std::printf("count: %d calls of operator new in the first step, %d in the last\n", static_cast<int>(many.front()),
              static_cast<int>(many.back()));
  EXPECT_LT(many.front(), few.front() + 10) << "less than one for each layer more";
  few.front() = many.front();
  EXPECT_EQ(few, many);
  EXPECT_GT(many.back(), 0);
  EXPECT_LE(*std::max_element(many.begin() + 1, many.end()), kMostInAStep);
}

}  // namespace weft::step_allocation_test
