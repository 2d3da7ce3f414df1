#include "base/timeline.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::timeline_test {

using Clock = Timeline::Clock;

class TimelineTest : public ::testing::Test {
 protected:
  std::shared_ptr<Timeline> open() {
    return std::make_shared<Timeline>(path_, [this](const std::string& warning) { warnings_ += warning; });
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Json events() const { return parse_json(text()); }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "trace.json";
  std::string warnings_;
};

TEST_F(TimelineTest, IsAnArrayOfEvents) {
  const Clock::time_point begin{std::chrono::microseconds(1500)};
  {
    const auto timeline = open();
    timeline->add("launch", {"rms_norm \"x\"", {{"provider", "cpu"}, {"layer", ""}}}, begin,
                  begin + std::chrono::nanoseconds(2500));
    timeline->add("step", {"step of 1"}, begin, begin);
  }
  const Json came = events();
  ASSERT_EQ(came.size(), 2u) << text();
  EXPECT_EQ(came[0]["name"], "rms_norm \"x\"");
  EXPECT_EQ(came[0]["cat"], "launch");
  EXPECT_EQ(came[0]["ph"], "X");
  EXPECT_EQ(came[0]["ts"], 1500.0);
  EXPECT_EQ(came[0]["dur"], 2.5);
  EXPECT_EQ(came[0]["args"], Json({{"provider", "cpu"}}));
  EXPECT_EQ(came[1]["dur"], 0.0);
  EXPECT_EQ(came[0]["tid"], came[1]["tid"]);
  EXPECT_EQ(warnings_, "");
}

TEST_F(TimelineTest, IsAnArrayWithoutAnyToo) {
  open();
  EXPECT_EQ(events(), Json::array());
}

TEST_F(TimelineTest, TellsThreadsApart) {
  {
    const auto timeline = open();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int k = 0; k < 100; ++k) TimelineScope(timeline.get(), "test", [] { return TimelineEvent{"event"}; });
      });
    for (std::thread& thread : threads) thread.join();
  }
  std::map<int, int> counts;
  for (const Json& event : events()) ++counts[event["tid"].get<int>()];
  EXPECT_EQ(counts, (std::map<int, int>{{0, 100}, {1, 100}, {2, 100}, {3, 100}}));
}

TEST_F(TimelineTest, HoldsWhatIsInAScopeWithinIt) {
  {
    const auto timeline = open();
    const TimelineScope outer(timeline.get(), "test", [] { return TimelineEvent{"outer"}; });
    const TimelineScope inner(timeline.get(), "test", [] { return TimelineEvent{"inner"}; });
    const TimelineScope none(nullptr, "test", []() -> TimelineEvent { throw std::logic_error("nobody asked"); });
  }
  const Json came = events();
  ASSERT_EQ(came.size(), 2u);
  const auto begin = [](const Json& event) { return event["ts"].get<double>(); };
  const auto end = [&](const Json& event) { return begin(event) + event["dur"].get<double>(); };
  EXPECT_EQ(came[0]["name"], "inner");
  EXPECT_GE(begin(came[0]), begin(came[1]));
  EXPECT_LE(end(came[0]), end(came[1]) + 0.0015);  // each is rounded to 0.001
}

TEST_F(TimelineTest, ShowsLaps) {
  {
    Stopwatch watch;
    watch.lap("before");
    show_laps(watch, nullptr, "start");
    show_laps(watch, open(), "start", {{"graph", "forward"}});
    watch.lap("after");
  }
  const Json came = events();
  ASSERT_EQ(came.size(), 2u);
  EXPECT_EQ(came[0]["name"], "before");
  EXPECT_EQ(came[1]["name"], "after");
  EXPECT_EQ(came[1]["args"]["graph"], "forward");
}

TEST_F(TimelineTest, SaysWhereItCannotBeWritten) {
  path_ = folder_ / "none/trace.json";
  EXPECT_NE(message_of([&] { open(); }).find("cannot be written: No such file or directory"), std::string::npos);
  path_ = "/dev/full";
  open();
  EXPECT_EQ(warnings_, "[--trace] \"/dev/full\" could not be written to its end: No space left on device");
}

}  // namespace weft::timeline_test
