#include "engine/speculation/ngram_proposer.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::ngram_proposer_test {

std::vector<int> proposal_of(NgramProposer& proposer, const std::vector<int>& prompt, const std::vector<int>& output,
                             std::int64_t most = 100) {
  std::vector<int> proposal;
  proposer.propose(prompt, output, most, proposal);
  return proposal;
}

TEST(NgramProposer, ProposesWhatFollowedTheLongestAndFirstOccurrence) {
  NgramProposer proposer({.num_speculative_tokens = 3, .prompt_lookup_max = 3, .prompt_lookup_min = 1});
  // 2 3 occurs twice and 1 2 3 once before the end.
  EXPECT_EQ(proposal_of(proposer, {9, 2, 3, 50, 1, 2, 3, 60, 61, 62, 63, 1}, {2, 3}), (std::vector<int>{60, 61, 62}));
  EXPECT_EQ(proposal_of(proposer, {2, 3, 50, 51, 2, 3, 60, 7}, {2, 3}), (std::vector<int>{50, 51, 2}));
  EXPECT_EQ(proposal_of(proposer, {1, 2, 3, 4}, {5}), std::vector<int>{});
  EXPECT_EQ(proposal_of(proposer, {5, 5}, {5}), std::vector<int>{5}) << "may reach the end";
  EXPECT_EQ(proposal_of(proposer, {5, 6, 7, 8}, {5}, 2), (std::vector<int>{6, 7}));
  EXPECT_EQ(proposal_of(proposer, {5, 6, 7, 8}, {5}, 0), std::vector<int>{});
  EXPECT_EQ(proposal_of(proposer, {}, {5}), std::vector<int>{});
}

TEST(NgramProposer, LooksUpAtLeastTheLeastNumberOfTokens) {
  NgramProposer proposer({.num_speculative_tokens = 2, .prompt_lookup_max = 4, .prompt_lookup_min = 2});
  EXPECT_EQ(proposal_of(proposer, {5, 6, 7, 5}, {}), std::vector<int>{});
  EXPECT_EQ(proposal_of(proposer, {4, 5, 6, 7, 4, 5}, {}), (std::vector<int>{6, 7}));
}

TEST(NgramProposer, PausesWhileProposalsFailAndTriesAgain) {
  NgramProposer proposer({.num_speculative_tokens = 4, .prompt_lookup_max = 1, .prompt_lookup_min = 1});
  const std::vector<int> prompt{1, 2, 3, 4, 5, 1};
  int proposals = 0;
  for (int step = 0; step < 1000; ++step)
    if (!proposal_of(proposer, prompt, {}).empty()) {
      ++proposals;
      proposer.report(4, 0);
    }
  EXPECT_GT(proposals, 5);
  EXPECT_LT(proposals, 30);
  for (int step = 0; step < 300; ++step)
    if (!proposal_of(proposer, prompt, {}).empty()) proposer.report(4, 4);
  EXPECT_FALSE(proposal_of(proposer, prompt, {}).empty()) << "no pauses while proposals are kept";
}

TEST(SpeculativeConfig, IsReadAsVllmWritesIt) {
  EXPECT_EQ(speculative_config("").num_speculative_tokens, 0);
  EXPECT_EQ(speculative_config(R"({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4})"),
            (SpeculativeConfig{.num_speculative_tokens = 5, .prompt_lookup_max = 4, .prompt_lookup_min = 4}));
  EXPECT_EQ(speculative_config(
                R"({"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4,"prompt_lookup_min":2})"),
            (SpeculativeConfig{.num_speculative_tokens = 3, .prompt_lookup_max = 4, .prompt_lookup_min = 2}));
}

TEST(SpeculativeConfig, NamesWhatIsWrong) {
  for (const auto& [text, named] :
       {std::pair{R"({"method":"eagle","num_speculative_tokens":3})", "eagle"},
        {R"({"method":"ngram"})", "lacks"},
        {R"({"method":"ngram","num_speculative_tokens":0})", "num_speculative_tokens"},
        {R"({"method":"ngram","num_speculative_tokens":3,"model":"x"})", "model"},
        {"[1]", "object"},
        {"{", "object"},
        {R"({"method":"ngram","num_speculative_tokens":3,"prompt_lookup_min":9,"prompt_lookup_max":2})",
         "prompt_lookup_min"}})
    try {
      speculative_config(text);
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    }
}

}  // namespace weft::ngram_proposer_test
