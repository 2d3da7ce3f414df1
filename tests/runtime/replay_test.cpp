// A plan that is captured once and run again with other token counts.

#include "runtime/replay.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/shared_library.h"
#include "compiler/pipeline.h"
#include "ir/parse.h"
#include "tests/small_layer.h"
#include "tests/thrown_message.h"

namespace weft::replay_test {

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() : context_(test_context()), traced_(small_layer(*context_)) {
    auto graph = traced_->clone();
    plan_ = compile(*graph, *context_, {1, 8}, {}).plan;
  }

  void bind(Replay& replay, int rows) {
    const LayerInputs inputs = layer_inputs(*traced_, rows);
    for (std::size_t i = 0; i < inputs.tensors.size(); ++i) replay.bind(i, inputs.copy(i));
  }

  // Results of a first run of a fresh replay.
  std::vector<std::vector<double>> fresh(int rows) {
    Replay replay(plan_, *context_->threads);
    bind(replay, rows);
    replay.run();
    return results(replay);
  }

  std::vector<std::vector<double>> results(const Replay& replay) {
    std::vector<std::vector<double>> all;
    for (std::size_t i = 0; i < plan_->results.size(); ++i) all.push_back(elements_of(replay.result(i)));
    return all;
  }

  std::shared_ptr<Context> context_;
  std::shared_ptr<Graph> traced_;
  std::shared_ptr<const Plan> plan_;
};

TEST_F(ReplayTest, GivesTheSameAfterOtherTokenCountsAsFresh) {
  Replay replay(plan_, *context_->threads);
  for (int rows : {3, 8, 1, 3}) {
    bind(replay, rows);
    replay.run();
    EXPECT_EQ(results(replay), fresh(rows)) << rows << " rows";
    EXPECT_EQ(replay.result(0).meta.text(), "f32[" + std::to_string(rows) + ", 32]");
  }
}

TEST_F(ReplayTest, GivesTheSameBitsInEveryModeAndAtEveryCount) {
  for (const bool check : {false, true}) {
    Replay replay(plan_, *context_->threads, nullptr, {.check = check});
    for (const int rows : {1, 2, 7, 8})
      for (const ReplayMode mode : {ReplayMode::full, ReplayMode::piecewise, ReplayMode::none}) {
        bind(replay, rows);
        replay.run(mode);
        EXPECT_EQ(results(replay), fresh(rows)) << rows << " rows, " << replay_mode_text(mode);
      }
  }
}

TEST_F(ReplayTest, RefusesAPairOfModes) {
  Replay replay(plan_, *context_->threads);
  bind(replay, 2);
  EXPECT_THROW(replay.run(ReplayMode::full_and_piecewise), InternalError);
  EXPECT_THROW(replay.capture(ReplayMode::full_decode_only), InternalError);
}

TEST_F(ReplayTest, CapturesNothingAfterReadyThatIsForbidden) {
  FirstTimeWork work;
  Replay replay(plan_, *context_->threads, nullptr, {.first_time_work = &work});
  EXPECT_EQ(work.counts(FirstTime::allocate).before_ready, 1);
  replay.capture(ReplayMode::full);
  work.set_ready(true);
  bind(replay, 2);
  replay.run(ReplayMode::full);
  replay.run(ReplayMode::none);
  const std::string message = message_of<InternalError>([&] { replay.run(ReplayMode::piecewise); });
  EXPECT_NE(message.find("plan layer, PIECEWISE wants to capture"), std::string::npos) << message;
  EXPECT_EQ(replay.counts().runs, 2);
}

// With only one step, so that the runs of every mode reach it.
TEST_F(ReplayTest, CountsWhatAKernelTakesOrOpensInARunButNotWhatItsObserverDoes) {
  for (const ReplayMode mode : {ReplayMode::full, ReplayMode::piecewise, ReplayMode::none}) {
    Plan plan = *plan_;
    Kernel taking = *plan.steps[0].kernel;
    bool opens = false;
    taking.run = [run = taking.run, &opens](const KernelCall& call) {
      std::string problem;
      opens ? static_cast<void>(SharedLibrary::open("libm.so.6", problem)) : static_cast<void>(Storage::allocate(128));
      run(call);
    };
    plan.steps[0].kernel = &taking;
    FirstTimeWork work;
    Replay replay(std::make_shared<const Plan>(plan), *context_->threads, nullptr, {.first_time_work = &work});
    replay.observer = [](std::size_t) { Storage::allocate(64); };
    bind(replay, 2);
    const std::int64_t before = work.counts(FirstTime::allocate).before_ready;
    replay.run(mode);
    EXPECT_EQ(work.counts(FirstTime::allocate).before_ready - before, 1) << replay_mode_text(mode);
    work.set_ready(true);
    std::string message = message_of<InternalError>([&] { replay.run(mode); });
    EXPECT_NE(message.find("a tensor of 128 bytes wants to allocate"), std::string::npos) << message;
    opens = true;
    message = message_of<InternalError>([&] { replay.run(mode); });
    EXPECT_NE(message.find("libm.so.6 wants to load"), std::string::npos) << message;
  }
}

TEST_F(ReplayTest, CallsTheObserverAfterEveryStepAndRunsNothingForZeroRows) {
  Replay replay(plan_, *context_->threads);
  std::size_t steps = 0;
  replay.observer = [&](std::size_t step) { EXPECT_EQ(step, steps++); };
  bind(replay, 2);
  replay.run();
  EXPECT_EQ(steps, plan_->steps.size());
  bind(replay, 0);
  replay.run();
  replay.run(ReplayMode::none);
  EXPECT_EQ(steps, plan_->steps.size());
  EXPECT_EQ(replay.counts().runs, 1);
}

TEST_F(ReplayTest, AddsUpTheCallsOfEveryModeForWhoAsks) {
  Replay replay(plan_, *context_->threads);
  LaunchTimes times;
  replay.launch_times = &times;
  const auto steps = static_cast<std::int64_t>(plan_->steps.size());
  std::int64_t runs = 0;
  for (const ReplayMode mode : {ReplayMode::full, ReplayMode::piecewise, ReplayMode::none}) {
    const auto before = times.wall;
    bind(replay, 3);
    replay.run(mode);
    EXPECT_EQ(times.launches, ++runs * steps) << replay_mode_text(mode);
    EXPECT_GT(times.wall, before);
    EXPECT_EQ(results(replay), fresh(3));
  }
  replay.launch_times = nullptr;
  replay.run();
  EXPECT_EQ(times.launches, runs * steps);
}

TEST(Replay, RunsAPlanWithoutSymbols) {
  const auto context = test_context();
  const auto graph = parse_graph(
      "graph g(%x: f32[2, 3]) stage=traced {\n  %y = neg(%x)\n  %z = mul(%y, %x)\n  return %z\n}", context->ops);
  Replay replay(compile(*graph, *context, {1, 8}, {}).plan, *context->threads);
  for (const float value : {2.0f, 3.0f}) {
    const std::vector<float> x(6, value);
    replay.bind(0, Tensor::from_bytes(Meta::tensor(DType::f32, {2, 3}), x.data()));
    replay.run();
    EXPECT_EQ(elements_of(replay.result(0)), std::vector<double>(6, -value * value));
  }
}

TEST_F(ReplayTest, RefusesTensorsOfAnotherType) {
  Replay replay(plan_, *context_->threads);
  EXPECT_THROW(replay.bind(0, Tensor::empty(Meta::tensor(DType::f32, {3, 31}))), UserError);
  EXPECT_THROW(replay.bind(0, Tensor::empty(Meta::tensor(DType::bf16, {3, 32}))), UserError);
}

TEST_F(ReplayTest, RefusesToRunWithoutAnInputOrBeyondItsBounds) {
  Replay replay(plan_, *context_->threads);
  EXPECT_THROW(replay.run(), InternalError);
  bind(replay, 9);
  for (const ReplayMode mode : {ReplayMode::full, ReplayMode::piecewise, ReplayMode::none})
    EXPECT_THROW(replay.run(mode), InternalError);
}

}  // namespace weft::replay_test
