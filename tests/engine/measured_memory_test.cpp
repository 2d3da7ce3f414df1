// The arena memory that steps use, compared with the plan.

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/open_checkpoint.h"
#include "engine/run/largest_step.h"
#include "tests/engine/tiny_model.h"

namespace weft::measured_memory_test {

std::unique_ptr<Engine> engine_of_rows(const TemporaryFolder& folder, std::int64_t rows) {
  const ModelRegistry models = make_model_registry();
  const std::string path = write_config_only(folder, "llama", {{"max_position_embeddings", rows}});
  Options options;
  options.load_format = "dummy";
  options.max_num_batched_tokens = rows;
  options.threads = 2;
  return std::make_unique<Engine>(make_context(options), open_checkpoint(path, options, models), models);
}

TEST(MeasuredMemory, GrowsWithTheLargestStepUpToThePlan) {
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0) << "a huge page is taken as a whole";
  const TemporaryFolder folder;
  const auto engine = engine_of_rows(folder, 1024);
  ModelRunner& runner = engine->runner();
  // Large enough not to be cleared when it is made.
  ASSERT_GT(runner.forward_plan()->arena_bytes, 1 << 20);
  ASSERT_LT(runner.forward_plan()->arena_bytes, 4 << 20);
  EXPECT_EQ(runner.memory_use().activations_measured, std::nullopt) << "no step has run";
  const auto measured_after = [&](int tokens) {
    engine->score(std::vector<int>(static_cast<std::size_t>(tokens)), {}, {});
    return runner.memory_use().activations_measured.value_or(-1);
  };
  const std::int64_t of_one = measured_after(1), of_some = measured_after(300);
  EXPECT_GT(of_one, 0);
  EXPECT_LT(of_one, runner.forward_plan()->arena_bytes / 2);
  EXPECT_GT(of_some, of_one);
  EXPECT_LT(of_some, runner.forward_plan()->arena_bytes);
  EXPECT_EQ(measured_after(1), of_some) << "it is that of the largest step";
  run_largest_step(runner);
  const std::int64_t largest = runner.memory_use().activations_measured.value_or(-1);
  const std::int64_t planned = runner.memory_use().activations_planned;
  EXPECT_GT(largest, of_some);
  EXPECT_GT(largest, planned * 8 / 10);
  EXPECT_LE(largest, planned + 4 * 4096) << "whole pages, at both ends of two arenas";
  ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
}

TEST(MeasuredMemory, CountsTheKvPagesThatStepsWrote) {
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0) << "a huge page is taken as a whole";
  const TemporaryFolder folder;
  const auto engine = engine_of_rows(folder, 1024);
  ModelRunner& runner = engine->runner();
  const std::int64_t layers = runner.facts().config.layer_count, block = runner.facts().kv.block;
  engine->limit_pages((std::int64_t{2} << 20) * layers / runner.kv_bytes_per_page());  // 2 MiB a layer: not cleared
  const auto measured = [&] { return runner.memory_use().kv_measured.value_or(-1); };
  EXPECT_EQ(measured(), 0);
  std::int64_t written = 0;
  for (const int tokens : {1, 300}) {
    const std::int64_t before = measured();
    engine->score(std::vector<int>(static_cast<std::size_t>(tokens)), {}, {});
    written += (tokens + block - 1) / block * runner.kv_bytes_per_page();
    EXPECT_GT(measured(), before) << tokens;
    EXPECT_LE(measured(), written + layers * 4 * 4096) << tokens << ": whole pages, at both ends of each step's";
  }
  EXPECT_GE(measured(), 300 / block * runner.kv_bytes_per_page());
  ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
}

TEST(MeasuredMemory, IsNotKnownWhereNothingIsPlanned) {
  const TemporaryFolder folder;
  const auto engine = tiny_engine(write_tiny_model(folder), {{"enforce-eager", "true"}});
  engine->generate(some_ids(5), {.max_tokens = 1});
  EXPECT_EQ(engine->runner().memory_use().activations_measured, std::nullopt);
  EXPECT_NO_THROW(run_largest_step(engine->runner()));
}

}  // namespace weft::measured_memory_test
