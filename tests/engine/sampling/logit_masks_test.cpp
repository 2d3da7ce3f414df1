#include "engine/sampling/logit_masks.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/io/small_vocabulary.h"

namespace weft::logit_masks_test {

// The tokens that the masks leave, of `count` tokens.
std::vector<int> left(const SamplingParameters& parameters, const std::vector<int>& output = {},
                      const std::vector<int>& ends = {}, std::size_t count = 6) {
  std::vector<float> logits(count, 1);
  LogitMasks(parameters, ends).apply(logits, output);
  std::vector<int> ids;
  for (std::size_t i = 0; i < count; ++i)
    if (logits[i] > -INFINITY) ids.push_back(static_cast<int>(i));
  return ids;
}

using Ids = std::vector<int>;

TEST(LogitMasks, DoNothingUnlessAsked) {
  EXPECT_FALSE(LogitMasks().is_active());
  EXPECT_FALSE(LogitMasks(SamplingParameters{.stop_ids = {1}}, Ids{2}).is_active());
  EXPECT_EQ(left({}), (Ids{0, 1, 2, 3, 4, 5}));
}

TEST(LogitMasks, KeepOnlyAllowedTokens) {
  EXPECT_EQ(left({.allowed_ids = Ids{4, 1, 4}}), (Ids{1, 4}));
  EXPECT_EQ(left({.allowed_ids = Ids{0, 5}}), (Ids{0, 5}));
}

TEST(LogitMasks, ABadWordIsRuledOutWhereItWouldBeComplete) {
  const SamplingParameters parameters{.bad_words = {{3}, {1, 2}, {4, 4, 5}}};
  EXPECT_EQ(left(parameters), (Ids{0, 1, 2, 4, 5}));
  EXPECT_EQ(left(parameters, {1}), (Ids{0, 1, 4, 5}));
  EXPECT_EQ(left(parameters, {1, 0}), (Ids{0, 1, 2, 4, 5}));
  EXPECT_EQ(left(parameters, {4}), (Ids{0, 1, 2, 4, 5})) << "one token of two";
  EXPECT_EQ(left(parameters, {0, 4, 4}), (Ids{0, 1, 2, 4}));
}

TEST(LogitMasks, NoEndComesBeforeMinTokens) {
  SamplingParameters parameters{.stop_ids = {1}, .min_tokens = 2};
  EXPECT_EQ(left(parameters, {0}, {5}), (Ids{0, 2, 3, 4}));
  EXPECT_EQ(left(parameters, {0, 0}, {5}), (Ids{0, 1, 2, 3, 4, 5}));
  parameters.ignore_end = true;
  EXPECT_EQ(left(parameters, {0}, {5}), (Ids{0, 2, 3, 4, 5})) << "an end that is ignored is a token as any";
}

TEST(LogitMasks, ABiasIsAddedAndBringsNoRuledOutTokenBack) {
  std::vector<float> logits = {1, 2, 3};
  LogitMasks({.allowed_ids = Ids{0, 1}, .logit_bias = {{1, -2.5F}, {2, 100}}}, {}).apply(logits, {});
  EXPECT_EQ(logits, (std::vector<float>{1, -0.5F, -INFINITY}));
}

TEST(LogitMasks, ABadWordIsRuledOutWithASpaceBeforeItToo) {
  const Tokenizer tokenizer(small_vocabulary({{"a", "b"}, {" ", "c"}}));
  EXPECT_EQ(bad_word_tokens(tokenizer, "ab"), (std::vector<Ids>{{256}, {' ', 256}}))
      << "also where that has another number of tokens";
  EXPECT_EQ(bad_word_tokens(tokenizer, "c"), (std::vector<Ids>{{'c'}, {257}}));
  EXPECT_THROW(bad_word_tokens(tokenizer, ""), UserError);
  EXPECT_THROW(bad_word_tokens(tokenizer, "\xff"), UserError);
}

}  // namespace weft::logit_masks_test
