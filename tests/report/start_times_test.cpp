// Where the time to ready goes, in phases and in the parts of one.

#include "report/start_times.h"

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
  EXPECT_GE(times.total, sum(times.phases));
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
