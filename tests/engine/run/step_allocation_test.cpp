// Steps allocate no memory: it was allocated before, for the largest possible step.

#include <algorithm>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "engine/open_checkpoint.h"
#include "tests/base/temporary_folder.h"
#include "tests/counted_allocations.h"
#include "tests/engine/tiny_model.h"

namespace weft::step_allocation_test {

class StepAllocation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCountsAllocations) GTEST_SKIP() << "sanitizers have an operator new of their own";
  }
  // Its weights are zeros, so that every model gives the same tokens.
  Engine engine(int layers, const std::string& mode = "auto") {
    const std::string path = write_config_only(folder_, "llama", {{"num_hidden_layers", layers}});
    Options options;
    options.load_format = "dummy";
    options.forbid_lazy = true;
    set_option(options, "cc.cudagraph_mode", mode, "test");
    options.threads = 2;
    options.max_num_batched_tokens = 16;
    return {make_context(options), open_checkpoint(path, options, models_), models_};
  }
  // The calls of operator new of each step until the engine is idle.
  static std::vector<std::int64_t> allocations_of_steps(Engine& engine) {
    std::vector<std::int64_t> counts;
    while (!engine.is_idle()) {
      const std::int64_t before = counted_allocations;
      engine.step();
      counts.push_back(counted_allocations - before);
    }
    return counts;
  }

  const TemporaryFolder folder_;
  const ModelRegistry models_ = make_model_registry();
};

TEST_F(StepAllocation, IsNoneInModelsOfAnyNumberOfLayers) {
  for (const int layers : {2, 12}) {
    Engine one = engine(layers);
    one.add({1, 2, 3}, {.max_tokens = 60, .ignore_end = true});
    const std::vector<std::int64_t> counts = allocations_of_steps(one);
    ASSERT_EQ(counts.size(), 60u);
    EXPECT_GT(counted_allocations, 0) << "of making the engine";
    EXPECT_EQ(*std::max_element(counts.begin(), counts.end()), 0);
  }
}

// Prompts of several chunks, steps of prompts together with sequences that generate, and steps that only generate. If a
// mode captures none of a kind, its steps run one by one.
TEST_F(StepAllocation, IsNoneInAnyModeForAThousandSteps) {
  for (const std::string mode : {"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"}) {
    SCOPED_TRACE(mode);
    Engine all = engine(2, mode);
    for (std::size_t steps = 0; steps < 1000;) {
      all.add(std::vector<int>(40, 7), {.max_tokens = 50, .ignore_end = true});
      all.add({1, 2, 3}, {.max_tokens = 90, .ignore_end = true});
      const std::vector<std::int64_t> counts = allocations_of_steps(all);
      steps += counts.size();
      EXPECT_EQ(*std::max_element(counts.begin(), counts.end()), 0);
    }
    const ReplayReport report = all.runner().replay_report();
    EXPECT_EQ(replay_mode_text(report.mode), mode);
    EXPECT_GE(report.runs, 2000) << "of forward and head";
    EXPECT_EQ(report.look_ups, 0);
    EXPECT_EQ(report.allocations, 0);
    for (const FirstTimeWork::Counts& counts : report.first_time) EXPECT_EQ(counts.after_ready, 0);
  }
}

// Prompts in chunks, alone and together with sequences that generate, and steps of another size after each end of a
// sequence.
TEST_F(StepAllocation, IsNoneWhereRequestsOfEveryKindShareSteps) {
  Engine shared = engine(2);
  shared.add(std::vector<int>(60, 7), {.max_tokens = 9, .ignore_end = true});
  shared.add(std::vector<int>(40, 5), {.temperature = 0.7, .top_k = 8, .max_tokens = 20, .ignore_end = true});
  shared.add(std::vector<int>(17, 4), {.temperature = 1, .top_p = 0.9, .min_p = 0.01, .max_tokens = 5});
  shared.add({8, 9}, {.max_tokens = 20,
                      .min_tokens = 10,
                      .allowed_ids = std::vector<int>{1, 2, 3, 4},
                      .bad_words = {{1, 2}, {3}},
                      .logit_bias = {{2, 1.5F}}});
  shared.add({6, 6}, {.repetition_penalty = 1.2, .frequency_penalty = 0.1, .presence_penalty = 0.1, .max_tokens = 30});
  const std::vector<std::int64_t> counts = allocations_of_steps(shared);
  EXPECT_GT(counts.size(), 20u);
  EXPECT_EQ(*std::max_element(counts.begin(), counts.end()), 0);
}

}  // namespace weft::step_allocation_test
