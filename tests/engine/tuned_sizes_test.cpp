// A model with tuned exact sizes has the same bits at every row count, and tunes nothing after ready.

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "report/size_report.h"
#include "tests/compiler/tune/table_timer.h"
#include "tests/engine/tiny_model.h"

namespace weft::tuned_sizes_test {

class TunedSizes : public ::testing::Test {
 protected:
  // Whatever is not as by default is faster, for functions; of kernels the default.
  static double seconds(const TimedRun& run) {
    const bool is_function = run.what.starts_with("rows_");
    return is_function && run.contender != "default" ? 1e-6 : 2e-6;
  }
  std::unique_ptr<Engine> engine(std::int64_t budget) {
    Options options;
    options.max_num_batched_tokens = 16;
    options.compile_sizes = {"1", "4", "16"};
    options.compile_ranges_split_points = {8};
    options.tuning_budget = budget;
    options.forbid_lazy = true;
    const auto context = make_context(options);
    context->tuning_timer = timer_;
    return std::make_unique<Engine>(context, Checkpoint::open(path_), make_model_registry(), &watch_);
  }

  TemporaryFolder folder_;
  std::string path_ = write_tiny_model(folder_);
  Stopwatch watch_;
  std::shared_ptr<TableTimer> timer_ = std::make_shared<TableTimer>(seconds);
};

TEST_F(TunedSizes, GiveTheBitsOfTheDefaultAtTheBoundsAndTheirNeighbours) {
  auto standard = engine(0);
  EXPECT_EQ(timer_->runs, 0);
  auto tuned = engine(100);
  EXPECT_GT(timer_->runs, 0);
  EXPECT_EQ(timer_->sizes, (std::set<std::int64_t>{1, 4, 16}));
  // Prompts of one step each, except the last one, which has steps of 16 and of 1.
  for (const int count : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17})
    EXPECT_EQ(all_logits(*tuned, some_ids(count)), all_logits(*standard, some_ids(count))) << count;
  const ReplayReport report = tuned->runner().replay_report();
  const auto counts = report.first_time[static_cast<std::size_t>(FirstTime::tune)];
  EXPECT_GT(counts.before_ready, 0);
  EXPECT_EQ(counts.after_ready, 0);
}

TEST_F(TunedSizes, AreAPhaseOfTheStart) {
  const auto has_lap = [&] {
    return std::any_of(watch_.laps().begin(), watch_.laps().end(), [](const auto& lap) { return lap.first == "tune"; });
  };
  engine(0);
  EXPECT_FALSE(has_lap());
  engine(100);
  EXPECT_TRUE(has_lap());
}

TEST_F(TunedSizes, AreExplained) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  Options options;
  options.max_num_batched_tokens = 16;
  options.compile_sizes = {"1", "4"};
  options.tuning_budget = 100;
  const auto context = make_context(options);
  context->tuning_timer =
      std::make_shared<TableTimer>([](const TimedRun& run) { return run.rows == 4 ? seconds(run) : 2e-6; });
  Engine engine(context, Checkpoint::open(path_), make_model_registry());
  const auto reports = size_reports(engine.runner().records(), context->size_tuning);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].size, (TokenRange{1, 1}));
  EXPECT_EQ(reports[0].range, (TokenRange{1, 16}));
  EXPECT_GT(reports[0].timed, 0);
  EXPECT_TRUE(reports[0].differences.empty());
  EXPECT_TRUE(reports[0].shares_plan);
  EXPECT_FALSE(reports[1].shares_plan);
  ASSERT_FALSE(reports[1].differences.empty());
  std::string computed;
  for (const SizeDifference& difference : reports[1].differences) {
    EXPECT_TRUE(difference.what.starts_with("rows_"));
    EXPECT_EQ(difference.there, "default");
    computed += difference.computes + " ";
    EXPECT_EQ(difference.reason, "tuned: 1.0 us against 2.0 us of default");
  }
  EXPECT_NE(computed.find("silu_and_mul_per_token_group_quant_int8"), std::string::npos) << computed;
  const Json json = sizes_json(engine.runner().records(), context->size_tuning);
  EXPECT_EQ(json["list"][1]["differences"].size(), reports[1].differences.size());
  EXPECT_EQ(json["list"][1]["differences"][0]["function"], reports[1].differences[0].what);
  EXPECT_EQ(json["tuning"]["budget_seconds"], 100);
  EXPECT_EQ(json["tuning"]["left"], 0);
  const std::string text = sizes_text(engine.runner().records(), context->size_tuning);
  EXPECT_NE(text.find("forward, 1 rows, in 1 to 16"), std::string::npos) << text;
  EXPECT_NE(text.find("nothing differs, one Plan serves both"), std::string::npos) << text;
}

}  // namespace weft::tuned_sizes_test
