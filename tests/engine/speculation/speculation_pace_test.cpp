#include "engine/speculation/speculation_pace.h"

#include <gtest/gtest.h>

namespace weft::speculation_pace_test {

// A machine on which a step of n sequences takes 10 + n rows: how many of 4000 steps have proposals of 4 tokens each,
// of which 2 are kept.
int proposing_steps(SpeculationPace& pace, std::int64_t sequences, double row_seconds) {
  int proposing = 0;
  for (int step = 0; step < 4000; ++step) {
    const bool proposes = pace.begin(sequences);
    proposing += proposes ? 1 : 0;
    const auto rows = static_cast<double>(sequences * (proposes ? 5 : 1));
    pace.observe(10 + rows * row_seconds, sequences * (proposes ? 3 : 1));
  }
  return proposing;
}

TEST(SpeculationPace, TakesWhatGivesMoreTokens) {
  SpeculationPace pace;
  pace.turn_on();
  EXPECT_GT(proposing_steps(pace, 1, 1), 3800) << "15 for three tokens, not 11 for one";
  EXPECT_LT(proposing_steps(pace, 32, 1), 200) << "170 for 96 tokens, not 42 for 32";
  EXPECT_GT(proposing_steps(pace, 1, 1), 3800) << "each load is measured for itself";
}

TEST(SpeculationPace, FindsOutThatTheOtherWayHasBecomeBetter) {
  SpeculationPace pace;
  pace.turn_on();
  EXPECT_LT(proposing_steps(pace, 4, 100), 200);
  EXPECT_GT(proposing_steps(pace, 4, 0.1), 2500);
}

TEST(SpeculationPace, ProposesAlwaysUnlessItIsTurnedOn) {
  SpeculationPace pace;
  EXPECT_EQ(proposing_steps(pace, 32, 1), 4000);
}

}  // namespace weft::speculation_pace_test
