// The time to ready, by phases and by the parts of one.

#include "report/start_times.h"

#include <thread>

#include <gtest/gtest.h>

#include "tests/small_layer.h"

namespace weft::start_times_test {

double sum(const StartTimes::Parts& parts) {
  double total = 0;
  for (const auto& [name, milliseconds] : parts) total += milliseconds;
  return total;
}

TEST(StartTimes, AccountForAllOfTheCompilePhase) {
  const auto context = test_context();
  const auto traced = small_layer(*context);
  Stopwatch watch;
  watch.lap("trace");
  const CompiledRanges compiled = compile_ranges(*traced, *context, {{1, 4}, {5, 64}}, {});
  const double compile = watch.lap("compile");
  const StartTimes times = start_times(watch, compiled.records);
  EXPECT_NEAR(sum(times.compile), compile, 1e-6);
  std::map<std::string, double> parts(times.compile.begin(), times.compile.end());
  for (const char* part : {"passes", "verify", "copy", "compare_ranges", "generate", "stitch", "plan_memory", "rest"})
    EXPECT_TRUE(parts.contains(part)) << part;
  // No part is counted twice.
  EXPECT_GE(parts["rest"], 0);
}

// They include the work after the last lap.
TEST(StartTimes, EndTheLastPhaseWhereTheTotalEnds) {
  Stopwatch watch(Stopwatch::Clock::now() - std::chrono::seconds(2));
  watch.lap("trace");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = watch.total();
  const StartTimes times = start_times(watch, {});
  const double after = watch.total();
  EXPECT_GE(times.total, before);
  EXPECT_LE(times.total, after);
  EXPECT_NEAR(times.total, sum(times.phases), 1e-9);
  ASSERT_EQ(times.phases.size(), 2u);
  EXPECT_EQ(times.phases[1].first, "report");
  EXPECT_GE(times.phases[1].second, 20);
}

TEST(StartTimes, HaveNoPartsWhereNothingWasCompiled) {
  Stopwatch watch;
  watch.lap("trace");
  const StartTimes times = start_times(watch, {});
  EXPECT_TRUE(times.compile.empty());
  EXPECT_EQ(compile_json(times), Json::object());
  EXPECT_EQ(timing_json(times)["total"], times.total);
}

}  // namespace weft::start_times_test
