#include "engine/speculation/proposal_pace.h"

#include <gtest/gtest.h>

namespace weft::proposal_pace_test {

TEST(ProposalPace, PausesWhileProposalsFailAndTriesAgain) {
  ProposalPace pace;
  int proposals = 0;
  for (int step = 0; step < 1000; ++step)
    if (pace.is_due()) {
      ++proposals;
      pace.report(4, 0);
    }
  EXPECT_GT(proposals, 5);
  EXPECT_LT(proposals, 30);
  for (int step = 0; step < 300; ++step)
    if (pace.is_due()) pace.report(4, 4);
  EXPECT_TRUE(pace.is_due()) << "no pauses while proposals are kept";
}

}  // namespace weft::proposal_pace_test
