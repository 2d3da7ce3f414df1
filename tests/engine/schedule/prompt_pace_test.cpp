// Steps whose times follow from what they compute, and how many rows of prompts they get.

#include "engine/schedule/prompt_pace.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace weft::prompt_pace_test {

// A machine on which a step takes this time.
struct Machine {
  double decode = 0.02, row = 0.001, position = 0.000001;
};

struct PromptRun {
  std::int64_t steps = 0, decode_steps = 0;
  std::int64_t last_most = 0;  // rows that the last step with any of the prompt had room for
  double longest = 0;          // step, as a multiple of one that only decodes
};

// Runs a prompt from `position` to `end` beside sequences that decode. The first `unmeasured` steps may be long.
PromptRun run_prompt(PromptPace& pace, const Machine& machine, std::int64_t position, std::int64_t end,
                     std::int64_t unmeasured = 0) {
  PromptRun run;
  while (position < end) {
    pace.begin(1);
    double seconds = machine.decode;
    const std::int64_t most = pace.has_room() ? pace.most_rows(position, false) : 0;
    const std::int64_t rows = std::min(most, end - position);
    if (rows > 0) pace.add(position, rows);
    for (std::int64_t row = position; row < position + rows; ++row)
      seconds += machine.row + machine.position * static_cast<double>(row);
    if (rows == 0) ++run.decode_steps;
    if (rows > 0) run.last_most = most;
    position += rows;
    if (run.steps++ >= unmeasured) run.longest = std::max(run.longest, seconds / machine.decode);
    pace.observe(seconds);
  }
  return run;
}

TEST(PromptPace, HasNoLimitUnlessItIsOnAndSequencesDecode) {
  PromptPace pace;
  pace.begin(1);
  EXPECT_TRUE(pace.has_room());
  EXPECT_EQ(pace.most_rows(0, true), INT64_MAX);
  pace.turn_on();
  pace.begin(0);
  pace.add(0, 512);
  EXPECT_TRUE(pace.has_room());
  EXPECT_EQ(pace.most_rows(0, false), INT64_MAX);
}

TEST(PromptPace, HasNoLimitWhileMoreShortPromptsWaitThanSequencesDecode) {
  PromptPace pace;
  pace.turn_on();
  pace.begin(2, 3);
  EXPECT_TRUE(pace.has_room());
  EXPECT_EQ(pace.most_rows(0, true), INT64_MAX);
  pace.add(0, 100);
  pace.observe(1);
  pace.begin(2, 2);
  EXPECT_FALSE(pace.has_room()) << "no step that only decodes was measured";
  pace.observe(0.01);
  pace.begin(2, 2);
  EXPECT_EQ(pace.most_rows(0, false), 2 * 100) << "twice the rows of the step before";
}

TEST(PromptPace, MeasuresAStepThatOnlyDecodesFirst) {
  PromptPace pace;
  pace.turn_on();
  pace.begin(1);
  EXPECT_FALSE(pace.has_room());
  EXPECT_EQ(pace.most_rows(0, false), 0);
  pace.observe(0.01);
  pace.begin(1);
  EXPECT_EQ(pace.most_rows(0, false), PromptPace::kFirstRows);
  EXPECT_EQ(pace.most_rows(0, true), PromptPace::kFirstRows / 2);
}

// Whatever a row and its attention cost, no step takes much longer than it may, and none much less once they are known.
TEST(PromptPace, KeepsStepsShort) {
  for (const Machine& machine :
       {Machine{}, Machine{.row = 0.0001, .position = 0}, Machine{.row = 0.0001, .position = 0.000002},
        Machine{.decode = 0.1, .row = 0.0004, .position = 0.00000003}, Machine{.decode = 0.002, .row = 0.01}}) {
    PromptPace pace;
    pace.turn_on();
    const PromptRun first = run_prompt(pace, machine, 0, 4096, 3);
    const double of_a_row = (machine.row + 4096 * machine.position) / machine.decode;
    EXPECT_LE(first.longest, std::max(PromptPace::kMostRatio, 1 + of_a_row) * 1.05) << machine.row;
    EXPECT_GE(first.last_most, static_cast<std::int64_t>((PromptPace::kMostRatio - 1) / of_a_row * 0.8)) << machine.row;
    // Another one from the beginning, and one that begins behind a cached prefix.
    EXPECT_LE(run_prompt(pace, machine, 0, 4096).longest, first.longest * 1.05) << machine.row;
    EXPECT_LE(run_prompt(pace, machine, 4000, 4200).longest, first.longest * 1.05) << machine.row;
  }
}

TEST(PromptPace, DecodesAloneOnceInAWhile) {
  PromptPace pace;
  pace.turn_on();
  const PromptRun run = run_prompt(pace, {}, 0, 4096);
  EXPECT_NEAR(static_cast<double>(run.decode_steps), static_cast<double>(run.steps) / (PromptPace::kMostMixed + 1), 1);
  // The machine is slower now, in all: steps keep their ratio.
  const PromptRun slower = run_prompt(pace, {.decode = 0.06, .row = 0.003, .position = 0.000003}, 0, 4096, 60);
  EXPECT_LE(slower.longest, PromptPace::kMostRatio * 1.1);
}

TEST(PromptPace, LeavesHalfOfTheStepToOthers) {
  PromptPace pace;
  pace.turn_on();
  run_prompt(pace, {.row = 0.001, .position = 0}, 0, 1000);
  pace.begin(1);
  const std::int64_t all = pace.most_rows(0, false), half = pace.most_rows(0, true);
  EXPECT_NEAR(static_cast<double>(half), static_cast<double>(all) / 2, 1);
  pace.add(0, half);
  EXPECT_NEAR(static_cast<double>(pace.most_rows(500, false)), static_cast<double>(all) / 2, 1);
  pace.add(500, all - half);
  EXPECT_LE(pace.most_rows(0, false), 1);
}

}  // namespace weft::prompt_pace_test
