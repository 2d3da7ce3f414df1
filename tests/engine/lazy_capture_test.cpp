// What is captured when it first runs says so then, and what it cost.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/engine/tiny_model.h"

namespace weft::lazy_capture_test {

// What the model says while it computes a few logits.
std::string said_by(Engine& engine) {
  testing::internal::CaptureStderr();
  all_logits(engine, some_ids(3));
  return testing::internal::GetCapturedStderr();
}

// The milliseconds in the line about this Plan; fails the test where there is none.
double cost_in(const std::string& said, const Plan& plan) {
  const std::string begin = fmt::format("{}: captured {} steps, FULL, in ", plan.name, plan.steps.size());
  const std::size_t at = said.find(begin);
  EXPECT_NE(at, std::string::npos) << "wanted \"" << begin << "\" in:\n" << said;
  if (at == std::string::npos) return 0;
  std::size_t length = 0;
  const double cost = std::stod(said.substr(at + begin.size()), &length);
  EXPECT_EQ(said.substr(at + begin.size() + length, 4), " ms\n") << said;
  return cost;
}

TEST(LazyCapture, SaysWhatItCostsWhenItComes) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  const auto engine = tiny_engine(write_tiny_model(folder), {{"capture", "lazy"}, {"logs", "replay"}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const ModelRunner& runner = engine->runner();
  EXPECT_TRUE(runner.replay_report().is_lazy);
  EXPECT_TRUE(runner.replay_report().captures.empty());
  EXPECT_EQ(runner.replay_report().capture_milliseconds, 0);

  const std::string said = said_by(*engine);
  const double cost = cost_in(said, *runner.forward_plan()) + cost_in(said, *runner.head_plan());
  const ReplayReport report = runner.replay_report();
  EXPECT_EQ(report.captures.size(), 2u);
  EXPECT_GT(report.capture_milliseconds, 0);
  EXPECT_NEAR(report.capture_milliseconds, cost, 0.0011);  // two that are rounded to 0.001
  const FirstTimeWork::Counts late = report.first_time[static_cast<std::size_t>(FirstTime::capture)];
  EXPECT_EQ(late.after_ready, 2);
  EXPECT_EQ(late.milliseconds_after_ready, report.capture_milliseconds);
  EXPECT_EQ(said_by(*engine), "") << "it is there";
}

TEST(LazyCapture, IsNoneWhereCapturesComeBeforeReady) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  const auto engine = tiny_engine(write_tiny_model(folder), {{"logs", "replay"}});
  const std::string said = testing::internal::GetCapturedStderr();
  cost_in(said, *engine->runner().forward_plan());
  cost_in(said, *engine->runner().head_plan());
  EXPECT_EQ(said_by(*engine), "");
}

}  // namespace weft::lazy_capture_test
