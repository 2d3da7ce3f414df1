// Every architecture of the registry at every row count: one trace serves all of them, and nothing is compiled after
// ready.

#include <random>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::every_model_sizes_test {

class EveryModelSizes : public ::testing::Test {
 protected:
  // Calls `body` with an engine for each architecture, of blocks and of plain numbers.
  void for_each(Options options, const std::function<void(Engine& engine)>& body) const {
    int models = 0;
    for (const std::string& architecture : models_.architectures())
      for (const DType dtype : {DType::q4_1, DType::bf16}) {
        SCOPED_TRACE(architecture + " of " + std::string(dtype_text(dtype)));
        const SampleCheckpoint sample(models_.find(architecture, "test"), {{"model_type", architecture}}, 7);
        const std::string path = sample.write_gguf(folder_, architecture + ".gguf", dtype);
        Engine engine(make_context(options), Checkpoint::open(path), models_);
        body(engine);
        ++models;
      }
    EXPECT_GE(models, 6);
  }
  static Options small_options() {
    Options options;
    options.threads = 1;
    options.max_num_batched_tokens = 24;
    options.max_num_seqs = 6;
    options.disable_compile_cache = true;
    return options;
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
};

TEST_F(EveryModelSizes, AreTracedAsForAllOfThem) {
  Options options = small_options();
  options.evaluate_guards = true;
  for_each(options, [&](Engine& engine) {
    for (int count = 1; count <= 24; ++count) all_logits(engine, some_ids(count));
    const std::vector<GuardReport> reports = engine.runner().model().guard_reports();
    ASSERT_EQ(reports.size(), 2U);
    for (const GuardReport& report : reports) {
      EXPECT_TRUE(report.unproved.empty()) << guard_report_text(report);
      EXPECT_EQ(report.bounds.at("s0"), (Interval{1, 24}));
    }
    EXPECT_EQ(reports[0].sizes, 24U) << "the forward, at every count of tokens";
    EXPECT_GE(reports[1].sizes, 24U) << "the head, at every count of tokens";
  });
}

TEST_F(EveryModelSizes, ReportNothingUnlessAsked) {
  for_each(small_options(), [](Engine& engine) { EXPECT_TRUE(engine.runner().model().guard_reports().empty()); });
}

// Requests of random lengths begin and end, so that steps have from one row to the allowed maximum.
TEST_F(EveryModelSizes, CompileNothingInTwoThousandSteps) {
  constexpr int kSteps = 2000;
  Options options = small_options();
  options.compile_ranges_split_points = {8};
  for_each(options, [&](Engine& engine) {
    std::mt19937 random(11);
    const auto up_to = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)) + 1; };
    std::int64_t tokens = 0;
    for (int step = 0; step < kSteps; ++step) {
      if (engine.is_idle() || random() % 4 == 0)
        engine.add(some_ids(up_to(40), up_to(100)), {.max_tokens = up_to(12), .ignore_end = true});
      tokens += std::ssize(engine.step());
    }
    EXPECT_GT(tokens, kSteps / 2);
    const ReplayReport report = engine.runner().replay_report();
    for (std::size_t kind = 0; kind < kFirstTimeKinds; ++kind)
      EXPECT_EQ(report.first_time[kind].after_ready, 0) << first_time_text(static_cast<FirstTime>(kind));
    EXPECT_GT(report.first_time[static_cast<std::size_t>(FirstTime::compile)].before_ready, 0);
  });
}

}  // namespace weft::every_model_sizes_test
