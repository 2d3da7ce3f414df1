// A late capture logs itself and its cost when it happens.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/engine/tiny_model.h"
#include "tests/program_run.h"

namespace weft::lazy_capture_test {

// The model's log while it computes a few logits.
std::string said_by(Engine& engine) {
  ::testing::internal::CaptureStderr();
  all_logits(engine, some_ids(3));
  return ::testing::internal::GetCapturedStderr();
}

// The milliseconds in the line about this Plan. The test fails if there is none.
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
  ::testing::internal::CaptureStderr();
  const auto engine = tiny_engine(write_tiny_model(folder), {{"capture", "lazy"}, {"logs", "replay"}});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  const ModelRunner& runner = engine->runner();
  EXPECT_TRUE(runner.replay_report().is_lazy);
  EXPECT_TRUE(runner.replay_report().captures.empty());
  EXPECT_EQ(runner.replay_report().launch_graph_milliseconds, 0);

  const std::string said = said_by(*engine);
  const double cost = cost_in(said, *runner.forward_plan()) + cost_in(said, *runner.head_plan());
  const ReplayReport report = runner.replay_report();
  EXPECT_EQ(report.captures.size(), 2u);
  EXPECT_GT(report.launch_graph_milliseconds, 0);
  EXPECT_NEAR(report.launch_graph_milliseconds, cost, 0.0011);  // two that are rounded to 0.001
  const FirstTimeWork::Counts late = report.first_time[static_cast<std::size_t>(FirstTime::capture)];
  EXPECT_EQ(late.after_ready, 2);
  EXPECT_EQ(late.milliseconds_after_ready, report.launch_graph_milliseconds);
  EXPECT_EQ(said_by(*engine), "") << "it is there";
}

TEST(LazyCapture, IsNoneWhereCapturesComeBeforeReady) {
  const TemporaryFolder folder;
  ::testing::internal::CaptureStderr();
  const auto engine = tiny_engine(write_tiny_model(folder), {{"logs", "replay"}});
  const std::string said = ::testing::internal::GetCapturedStderr();
  cost_in(said, *engine->runner().forward_plan());
  cost_in(said, *engine->runner().head_plan());
  EXPECT_EQ(said_by(*engine), "");
}

TEST(LazyCapture, IsInTheStatisticsOfWhatWaitedForIt) {
  const TemporaryFolder folder;
  const std::string path = write_tiny_model(folder);
  const auto said = [&](const std::string& device, const std::string& capture) {
    const ProgramRun run = run_weft({"complete", path, "-p", "abc", "-n", "4", "--ignore-eos", "--stats", "--device",
                                     device, "--capture", capture});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.err;
  };
  EXPECT_NE(said("cpu", "lazy").find("\nCaptures after ready: 2, "), std::string::npos) << "forward and head";
  // On a device the pieces of the prompt's size, and forward and head of single tokens.
  EXPECT_NE(said("fake-cuda", "lazy").find("\nCaptures after ready: 3, "), std::string::npos);
  for (const char* device : {"cpu", "fake-cuda"})
    EXPECT_EQ(said(device, "ready").find("Captures after ready"), std::string::npos);
}

}  // namespace weft::lazy_capture_test
