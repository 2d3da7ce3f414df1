#include "engine/speculation/ngram_proposer.h"

#include <gtest/gtest.h>

namespace weft::ngram_proposer_test {

std::vector<int> proposal_of(const SpeculativeConfig& config, const std::vector<int>& prompt,
                             const std::vector<int>& output, std::int64_t most = 3) {
  ScheduledSequence sequence;
  sequence.prompt = prompt;
  sequence.output = output;
  const Proposer::Sequence one{.sequence = &sequence, .most = most};
  NgramProposer(config).propose({&one, 1});
  return sequence.draft;
}

TEST(NgramProposer, ProposesWhatFollowedTheLongestAndFirstOccurrence) {
  const SpeculativeConfig config{.prompt_lookup_max = 3, .prompt_lookup_min = 1};
  // 2 3 occurs twice and 1 2 3 once before the end.
  EXPECT_EQ(proposal_of(config, {9, 2, 3, 50, 1, 2, 3, 60, 61, 62, 63, 1}, {2, 3}), (std::vector<int>{60, 61, 62}));
  EXPECT_EQ(proposal_of(config, {2, 3, 50, 51, 2, 3, 60, 7}, {2, 3}), (std::vector<int>{50, 51, 2}));
  EXPECT_EQ(proposal_of(config, {1, 2, 3, 4}, {5}), std::vector<int>{});
  EXPECT_EQ(proposal_of(config, {5, 5}, {5}), std::vector<int>{5}) << "may reach the end";
  EXPECT_EQ(proposal_of(config, {5, 6, 7, 8}, {5}, 2), (std::vector<int>{6, 7}));
  EXPECT_EQ(proposal_of(config, {}, {5}), std::vector<int>{});
}

TEST(NgramProposer, LooksUpAtLeastTheLeastNumberOfTokens) {
  const SpeculativeConfig config{.prompt_lookup_max = 4, .prompt_lookup_min = 2};
  EXPECT_EQ(proposal_of(config, {5, 6, 7, 5}, {}), std::vector<int>{});
  EXPECT_EQ(proposal_of(config, {4, 5, 6, 7, 4, 5}, {}, 2), (std::vector<int>{6, 7}));
}

}  // namespace weft::ngram_proposer_test
