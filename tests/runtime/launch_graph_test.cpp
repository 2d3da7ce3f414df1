// The captured parts of a Plan in each mode.

#include "runtime/launch_graph.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/pipeline.h"
#include "runtime/replay.h"
#include "tests/small_layer.h"

namespace weft::launch_graph_test {

class CaptureTest : public testing::Test {
 protected:
  CaptureTest() : context_(test_context()) {
    plan_ = *compile(*small_layer(*context_), *context_, {1, 8}, {}).plan;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      if (plan_.steps[i].op == "attention") attention_ = i;
  }

  // "0-4 captured, 4-5 apart, ..."
  std::string cut(ReplayMode mode) const {
    std::string text;
    for (const Stretch& stretch : cut_for_launch_graphs(plan_, mode))
      text += fmt::format("{}{}-{} {}", text.empty() ? "" : ", ", stretch.first, stretch.last,
                          stretch.is_captured ? "captured" : "apart");
    return text;
  }
  std::size_t steps() const { return plan_.steps.size(); }

  // The step's kernel again, never to be captured.
  void forbid(std::size_t step) {
    kernel_ = *plan_.steps[step].kernel;
    kernel_.launch_graph = LaunchGraphClass::never;
    plan_.steps[step].kernel = &kernel_;
  }

  std::shared_ptr<Context> context_;
  Plan plan_;
  Kernel kernel_;
  std::size_t attention_ = 0;
};

TEST_F(CaptureTest, TakesTheWholeForwardAtOnceOrThePiecesAroundWhatItWasSplitAt) {
  ASSERT_GT(attention_, 0u);
  EXPECT_TRUE(plan_.steps[attention_].is_splitting);
  EXPECT_EQ(cut(ReplayMode::none), fmt::format("0-{} apart", steps()));
  EXPECT_EQ(cut(ReplayMode::full), fmt::format("0-{} captured", steps()));
  EXPECT_EQ(cut(ReplayMode::piecewise),
            fmt::format("0-{0} captured, {0}-{1} apart, {1}-{2} captured", attention_, attention_ + 1, steps()));
  EXPECT_THROW(cut_for_launch_graphs(plan_, ReplayMode::full_and_piecewise), InternalError);
}

TEST_F(CaptureTest, LeavesOutWhatMayNeverBeCaptured) {
  forbid(1);
  EXPECT_EQ(cut(ReplayMode::full), fmt::format("0-1 captured, 1-2 apart, 2-{} captured", steps()));
}

TEST_F(CaptureTest, NeedsMetadataInPlaceForWhatReadsABatch) {
  EXPECT_EQ(launch_graph_class(plan_.steps[0]), LaunchGraphClass::always);
  EXPECT_EQ(launch_graph_class(plan_.steps[attention_]), LaunchGraphClass::with_metadata_in_place);
  // Even if it is in one piece with its neighbours, it is no part of a piece's capture.
  for (PlanStep& step : plan_.steps) step.is_splitting = false;
  EXPECT_EQ(cut(ReplayMode::full), fmt::format("0-{} captured", steps()));
  EXPECT_NE(cut(ReplayMode::piecewise).find(fmt::format("{}-{} apart", attention_, attention_ + 1)), std::string::npos);
  kernel_ = *plan_.steps[attention_].kernel;
  kernel_.launches = true;
  plan_.steps[attention_].kernel = &kernel_;
  EXPECT_EQ(launch_graph_class(plan_.steps[attention_]), LaunchGraphClass::with_metadata_in_place);
  kernel_.launch_graph = LaunchGraphClass::never;  // as plugins without a declaration
  EXPECT_EQ(launch_graph_class(plan_.steps[attention_]), LaunchGraphClass::never);
  EXPECT_NE(cut(ReplayMode::full).find(fmt::format("{}-{} apart", attention_, attention_ + 1)), std::string::npos);
}

// Records the captures and replays that are requested.
class NotingGraphBuilder : public LaunchGraphBuilder {
 public:
  struct Noted : LaunchGraph {
    Noted(NotingGraphBuilder& owner, std::unique_ptr<LaunchGraph> inner) : owner(owner), inner(std::move(inner)) {}
    void replay() override {
      ++owner.replays;
      inner->replay();
    }
    NotingGraphBuilder& owner;
    std::unique_ptr<LaunchGraph> inner;
  };
  std::unique_ptr<LaunchGraph> capture(const LaunchList& list, std::size_t first, std::size_t last) override {
    ++captures;
    return std::make_unique<Noted>(*this, host.capture(list, first, last));
  }
  HostLaunchGraphBuilder host;
  int captures = 0;
  int replays = 0;
};

TEST_F(CaptureTest, IsAskedForOnceAndReplayedWithEveryCount) {
  const auto traced = small_layer(*context_);
  NotingGraphBuilder graph_builder;
  FirstTimeWork work;
  std::vector<std::string> said;
  Replay replay(std::make_shared<const Plan>(plan_), *context_->threads, nullptr,
                {.first_time_work = &work,
                 .graph_builder = &graph_builder,
                 .on_launch_graph = [&](const std::string& line) { said.push_back(line); }});
  for (const int rows : {1, 8, 5}) {
    const std::vector<Tensor> inputs = layer_inputs(*traced, rows).copies();
    for (std::size_t i = 0; i < inputs.size(); ++i) replay.bind(i, inputs[i]);
    replay.run(ReplayMode::piecewise);
  }
  EXPECT_EQ(graph_builder.captures, 2);
  EXPECT_EQ(graph_builder.replays, 6);
  EXPECT_EQ(work.counts(FirstTime::capture).before_ready, 1);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].find(fmt::format("layer: captured {} steps, PIECEWISE, in ", steps())), 0u) << said[0];
  EXPECT_EQ(replay.stretches(ReplayMode::piecewise).size(), 3u);
  EXPECT_TRUE(replay.stretches(ReplayMode::full).empty());
}

}  // namespace weft::launch_graph_test
