// A model gives the same bits however its steps are captured, and does nothing for the first time after ready.

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "codegen/row_compiler.h"
#include "tests/engine/tiny_model.h"
#include "tests/program_run.h"
#include "tests/thrown_message.h"

namespace weft::replay_modes_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

class ReplayModesTest : public ::testing::Test {
 protected:
  ReplayModesTest() : path_(write_tiny_model(folder_)) {}

  // Logits of a prompt in steps of 16, 16 and 1 rows, and of one in steps of 16 and 15.
  std::vector<std::vector<std::vector<float>>> logits(Settings settings) const {
    settings.emplace_back("max-num-batched-tokens", "16");
    const auto engine = tiny_engine(path_, settings);
    return {all_logits(*engine, some_ids(33)), all_logits(*engine, some_ids(31))};
  }

  // The tokens of four prompts of unequal length that share steps, decode steps among them.
  std::vector<std::vector<int>> generated(const Settings& settings) const {
    const auto engine = tiny_engine(path_, settings);
    std::vector<std::vector<int>> tokens(4);
    for (int i = 0; i < 4; ++i) engine->add(some_ids(3 + 5 * i, i), {.max_tokens = 6});
    while (!engine->is_idle())
      for (const RequestEvent& event : engine->step())
        tokens[static_cast<std::size_t>(event.request)].push_back(event.token);
    return tokens;
  }

  TemporaryFolder folder_;
  std::string path_;
};

constexpr const char* kModes[] = {"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"};

TEST_F(ReplayModesTest, EveryModeGivesTheSameBits) {
  const auto wanted = logits({});
  for (const char* mode : kModes) {
    EXPECT_EQ(logits({{"cc.cudagraph_mode", mode}}), wanted) << mode;
    EXPECT_EQ(logits({{"cc.cudagraph_mode", mode}, {"cc.compile_ranges_split_points", "4,15"}}), wanted) << mode;
    EXPECT_EQ(logits({{"cc.cudagraph_mode", mode}, {"cc.cudagraph_capture_sizes", "1,2,15"}}), wanted) << mode;
  }
  EXPECT_EQ(logits({{"check-replay", ""}, {"capture", "lazy"}}), wanted);
  EXPECT_EQ(logits({{"cc.cudagraph_copy_inputs", "1"}, {"forbid-lazy", ""}}), wanted);
}

TEST_F(ReplayModesTest, EveryModeGivesTheSameTokensToRequestsThatShareSteps) {
  const auto wanted = generated({});
  for (const char* mode : kModes)
    EXPECT_EQ(generated({{"cc.cudagraph_mode", mode}, {"check-replay", ""}, {"forbid-lazy", ""}}), wanted) << mode;
  EXPECT_EQ(generated({{"cc.cudagraph_copy_inputs", "1"}}), wanted);
}

// Flips one bit of a result of the first generated function.
TEST_F(ReplayModesTest, ACheckedReplayIsHeldAgainstTheGraph) {
  if (!can_compile_rows()) GTEST_SKIP() << row_compiler_text();
  for (const char* mode : {"FULL", "NONE"}) {
    const auto engine = tiny_engine(path_, {{"check-replay", ""}, {"cc.cudagraph_mode", mode}});
    all_logits(*engine, some_ids(3));
    const std::vector<PlanStep>& steps = engine->runner().forward_plan()->steps;
    const auto step =
        std::find_if(steps.begin(), steps.end(), [](const PlanStep& one) { return one.kernel->origin == "generated"; });
    ASSERT_NE(step, steps.end());
    auto& kernel = const_cast<Kernel&>(*step->kernel);
    kernel.run = [run = kernel.run](const KernelCall& call) {
      run(call);
      reinterpret_cast<std::uint8_t*>(call.results[0].data)[0] ^= 1;
    };
    const std::string message = message_of<InternalError>([&] { all_logits(*engine, some_ids(3)); });
    EXPECT_NE(message.find("[--check-replay] piece forward." + step->piece), std::string::npos) << message;
    EXPECT_NE(message.find("gives other bits compiled than op by op"), std::string::npos) << message;
  }
}

// Rows that are not the step's change nothing of it.
TEST_F(ReplayModesTest, StepsArePaddedWhereThatIsAskedFor) {
  const Settings padded{
      {"pad-steps", ""}, {"cc.cudagraph_capture_sizes", "4,16"}, {"check-replay", ""}, {"forbid-lazy", ""}};
  const auto wanted = logits({});
  const auto wanted_tokens = generated({});
  for (const char* mode : kModes) {
    Settings settings = padded;
    settings.emplace_back("cc.cudagraph_mode", mode);
    EXPECT_EQ(logits(settings), wanted) << mode;
    EXPECT_EQ(generated(settings), wanted_tokens) << mode;
  }
  const auto rows_of_padding = [&](Settings settings) {
    settings.emplace_back("cc.cudagraph_capture_sizes", "4,16");
    const auto engine = tiny_engine(path_, settings);
    for (const int rows : {3, 4, 9, 17}) all_logits(*engine, some_ids(rows));
    return engine->runner().replay_report().padded_rows;
  };
  EXPECT_EQ(rows_of_padding({}), 0);
  EXPECT_EQ(rows_of_padding({{"pad-steps", ""}}), 1 + 0 + 7 + 0);
  const std::string refusal = message_of<UserError>([&] {
    tiny_engine(path_, {{"pad-steps", ""}, {"cc.compile_sizes", "3"}, {"max-num-seqs", "4"}});
  });
  EXPECT_NE(refusal.find("[cc.compile_sizes]"), std::string::npos) << refusal;
}

TEST_F(ReplayModesTest, ReportsWhatIsInEffect) {
  const auto report_of = [&](const Settings& settings) {
    return tiny_engine(path_, settings)->runner().replay_report();
  };
  const ReplayReport full = report_of({{"max-num-batched-tokens", "20"}, {"max-num-seqs", "2"}});
  EXPECT_EQ(full.mode, ReplayMode::full);
  EXPECT_EQ(full.sizes, (Counts{1, 2, 4, 20}));
  ASSERT_EQ(full.captures.size(), 2u);  // forward and head
  EXPECT_EQ(full.captures[0].plan, "forward");
  EXPECT_EQ(full.captures[0].stretches, 1u);
  EXPECT_EQ(full.captures[0].other_steps, 0u);
  const auto count = [](const ReplayReport& report, FirstTime kind) {
    return report.first_time[static_cast<std::size_t>(kind)];
  };
  EXPECT_EQ(count(full, FirstTime::capture).before_ready, 2);
  // Both graphs, and the existing functions.
  EXPECT_GE(count(full, FirstTime::compile).before_ready, 2);
  EXPECT_EQ(count(full, FirstTime::capture).after_ready, 0);

  const ReplayReport pair =
      report_of({{"cc.cudagraph_mode", "full_and_piecewise"}, {"cc.cudagraph_capture_sizes", "8,4"}});
  EXPECT_EQ(pair.mode, ReplayMode::full_and_piecewise);
  EXPECT_EQ(pair.sizes, (Counts{4, 8}));
  ASSERT_EQ(pair.captures.size(), 4u);
  EXPECT_EQ(pair.captures[0].mode, ReplayMode::piecewise);
  EXPECT_EQ(pair.captures[0].stretches, 3u);    // around the attention of 2 layers
  EXPECT_EQ(pair.captures[0].other_steps, 2u);  // those
  EXPECT_EQ(pair.captures[1].mode, ReplayMode::full);

  const ReplayReport none = report_of({{"enforce-eager", ""}});
  EXPECT_EQ(none.mode, ReplayMode::none);
  EXPECT_TRUE(none.captures.empty());
  EXPECT_TRUE(report_of({{"capture", "lazy"}}).captures.empty());
}

TEST_F(ReplayModesTest, DoesNothingForTheFirstTimeAfterReady) {
  const auto wanted = generated({});
  for (const Settings& settings : {Settings{{"forbid-lazy", ""}},
                                   {{"forbid-lazy", ""}, {"cc.compile_ranges_split_points", "2,5"}},
                                   {{"forbid-lazy", ""}, {"cc.cudagraph_capture_sizes", "3"}},
                                   {{"forbid-lazy", ""}, {"enforce-eager", ""}}})
    EXPECT_EQ(generated(settings), wanted);
}

// Weights and libraries, if steps run op by op.
TEST_F(ReplayModesTest, LoadsAllThatEagerStepsNeedBeforeReady) {
  const auto eager = tiny_engine(path_, {{"enforce-eager", ""}});
  const auto loads = [&] {
    return eager->runner().replay_report().first_time[static_cast<std::size_t>(FirstTime::load)];
  };
  const std::int64_t before = loads().before_ready;
  EXPECT_GT(before, 10) << "weights of two layers";
  all_logits(*eager, some_ids(5));
  EXPECT_EQ(loads().before_ready, before);
  EXPECT_EQ(loads().after_ready, 0);
}

TEST_F(ReplayModesTest, LoadsASecondModelIntoAContextThatIsReady) {
  Options options;
  set_option(options, "forbid-lazy", "", "test");
  const auto context = make_context(options);
  Engine first(context, Checkpoint::open(path_), make_model_registry());
  Engine second(context, Checkpoint::open(path_), make_model_registry());
  EXPECT_EQ(all_logits(first, some_ids(5)), all_logits(second, some_ids(5)));
}

TEST_F(ReplayModesTest, FailsWhereACaptureIsLazyAndThatIsForbidden) {
  EXPECT_EQ(generated({{"capture", "lazy"}}), generated({}));
  const ProgramRun run = run_weft({"complete", path_, "-p", "a", "-n", "2", "--capture", "lazy", "--forbid-lazy"});
  EXPECT_EQ(breach_of_refusal(run, "--capture=lazy"), "");
  EXPECT_EQ(run_weft({"complete", path_, "-p", "a", "-n", "2", "--forbid-lazy"}).status, 0);
}

}  // namespace weft::replay_modes_test
