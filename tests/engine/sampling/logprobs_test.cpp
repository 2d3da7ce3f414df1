#include "engine/sampling/logprobs.h"

#include <cmath>

#include <gtest/gtest.h>

namespace weft::logprobs_test {

std::vector<int> top_ids(const TokenLogprobs& logprobs) {
  std::vector<int> ids;
  for (const TokenLogprob& one : logprobs.top) ids.push_back(one.id);
  return ids;
}

TEST(Logprobs, AreTheLogSoftmax) {
  const std::vector<float> logits = {std::log(1.0F), std::log(5.0F), std::log(2.0F)};
  const TokenLogprobs one = logprobs_of(logits, 2, 2);
  EXPECT_EQ(one.chosen.id, 2);
  EXPECT_NEAR(one.chosen.logprob, std::log(0.25), 1e-6);
  EXPECT_EQ(one.rank, 2);
  EXPECT_EQ(top_ids(one), (std::vector<int>{1, 2}));
  EXPECT_NEAR(one.top[0].logprob, std::log(0.625), 1e-6);
  EXPECT_EQ(one.top[1].logprob, one.chosen.logprob);
}

TEST(Logprobs, TheLowerIdOfEqualsIsFirst) {
  const std::vector<float> logits = {1, 3, 3, 0, 3};
  const TokenLogprobs last = logprobs_of(logits, 4, 2);
  EXPECT_EQ(top_ids(last), (std::vector<int>{1, 2}));
  EXPECT_EQ(last.rank, 3);
  EXPECT_EQ(top_ids(logprobs_of(logits, 4, -1)), (std::vector<int>{1, 2, 4, 0, 3}));
  EXPECT_EQ(top_ids(logprobs_of(logits, 4, 9)), (std::vector<int>{1, 2, 4, 0, 3}));
  EXPECT_EQ(top_ids(logprobs_of(logits, 4, 0)), std::vector<int>());
}

TEST(Logprobs, InfiniteLogitsShareAllOfTheProbability) {
  const std::vector<float> logits = {1, INFINITY, -INFINITY, INFINITY};
  EXPECT_EQ(logprobs_of(logits, 3, 0).chosen.logprob, std::log(0.5F));
  EXPECT_EQ(logprobs_of(logits, 0, 0).chosen.logprob, -INFINITY);
  EXPECT_EQ(logprobs_of(std::vector<float>{0, -INFINITY}, 1, 1).chosen.logprob, -INFINITY);
  EXPECT_EQ(logprobs_of(std::vector<float>{0, -INFINITY}, 1, 1).top[0].logprob, 0);
}

}  // namespace weft::logprobs_test
