#include "base/process_clock.h"

#include <ctime>
#include <numeric>

#include <gtest/gtest.h>

namespace weft::process_clock_test {

double processor_milliseconds() {
  std::timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
}

TEST(ProcessClock, BeganBeforeAllThatTheProcessDid) {
  const double used = processor_milliseconds();
  const Stopwatch watch = watch_from_process_start();
  EXPECT_GT(used, 0);
  EXPECT_GE(watch.total(), used);
}

TEST(Stopwatch, HasLapsWithoutGaps) {
  Stopwatch watch;
  double given = watch.lap("a");
  given += watch.lap("b");
  given += watch.lap("a");
  const double total = watch.total();
  ASSERT_EQ(watch.laps().size(), 2u);
  EXPECT_EQ(watch.laps()[0].first, "a");
  const double sum = watch.laps()[0].second + watch.laps()[1].second;
  EXPECT_NEAR(sum, given, 1e-9);
  EXPECT_LE(sum, total);
  // However long ago the last lap ended.
  EXPECT_NEAR(sum, watch.lapped(), 1e-9);
}

TEST(Stopwatch, CountsTheTimeBeforeItWasMadeForTheFirstLap) {
  Stopwatch watch(Stopwatch::Clock::now() - std::chrono::seconds(2));
  EXPECT_GE(watch.lap("before"), 2000);
  EXPECT_GE(watch.total(), 2000);
}

TEST(Stopwatch, TellsAnObserverOfLapsThatWereAndThatCome) {
  using Time = Stopwatch::Clock::time_point;
  std::vector<std::string> names;
  std::vector<std::pair<Time, Time>> laps;
  const Time begin = Stopwatch::Clock::now();
  Stopwatch watch(begin);
  watch.lap("a");
  watch.lap("b");
  watch.observe([&](const std::string& name, Time from, Time to) {
    names.push_back(name);
    laps.emplace_back(from, to);
  });
  watch.lap("c");
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_EQ(laps.size(), 3u);
  EXPECT_EQ(laps[0].first, begin);
  for (std::size_t i = 0; i < laps.size(); ++i) {
    EXPECT_LE(laps[i].first, laps[i].second);
    // The end is the sum of all laps, in milliseconds.
    if (i == 0) continue;
    EXPECT_LE(std::chrono::abs(laps[i].first - laps[i - 1].second), std::chrono::microseconds(1));
  }
}

}  // namespace weft::process_clock_test
