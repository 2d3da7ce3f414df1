#include "engine/sampling/sampler.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/thrown_message.h"

namespace weft::sampler_test {

const std::vector<float> kTies = {2, 1, 2, 0, 1, -INFINITY};

TEST(Sampler, GreedyTakesTheLowestIdOfEquals) { EXPECT_EQ(Sampler().sample(kTies, {}, {}, {}), 0); }

TEST(Sampler, TopKKeepsThoseThatTieWithTheLast) {
  const SamplingParameters parameters{.temperature = 1, .top_k = 3};
  EXPECT_EQ(Sampler().distribution(kTies, parameters, {}, {}).ids, (std::vector<int>{0, 1, 2, 4}));
}

TEST(Sampler, TopPCutsTheLowerIdsOfEqualsFirst) {
  const SamplingParameters parameters{.temperature = 1, .top_p = 0.3};
  EXPECT_EQ(Sampler().distribution(kTies, parameters, {}, {}).ids, (std::vector<int>{2}));
}

TEST(Sampler, MinPIsRelativeToTheMostLikely) {
  const SamplingParameters parameters{.temperature = 1, .min_p = 0.5};
  EXPECT_EQ(Sampler().distribution(kTies, parameters, {}, {}).ids, (std::vector<int>{0, 2}));
}

TEST(Sampler, InfiniteLogitsTakeAllOfTheProbability) {
  const std::vector<float> logits = {1, INFINITY, 3, INFINITY, -INFINITY};
  const SamplingParameters parameters{.temperature = 1};
  const Distribution d = Sampler().distribution(logits, parameters, {}, {});
  EXPECT_EQ(d.ids, (std::vector<int>{1, 3}));
  EXPECT_EQ(d.probabilities, (std::vector<double>{0.5, 0.5}));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SamplingParameters drawn = parameters;
    drawn.seed = seed;
    EXPECT_EQ(Sampler().sample(logits, drawn, {}, {}) % 2, 1);
  }
  EXPECT_EQ(Sampler().greedy_token(logits, {}, {}, {}), 1);
}

TEST(Sampler, PenaltiesCountPromptAndOutputAsVllmDoes) {
  const std::vector<float> logits = {1, -1, 0.5f};
  SamplingParameters parameters{.temperature = 1, .repetition_penalty = 2};
  parameters.frequency_penalty = 0.5;
  parameters.presence_penalty = 0.25;
  const std::vector<int> prompt = {0}, output = {1, 1};
  const Distribution d = Sampler().distribution(logits, parameters, prompt, output);
  // 1 / 2, -1 * 2 - 2 * 0.5 - 0.25, 0.5
  const double e0 = std::exp(0.5), e1 = std::exp(-3.25), e2 = std::exp(0.5);
  ASSERT_EQ(d.ids.size(), 3u);
  EXPECT_NEAR(d.probabilities[0], e0 / (e0 + e1 + e2), 1e-6);
  EXPECT_NEAR(d.probabilities[1], e1 / (e0 + e1 + e2), 1e-6);
}

TEST(Sampler, PenaltiesCountTheLastTokensAlone) {
  const std::vector<float> logits = {1, 1, 1, 1};
  SamplingParameters parameters{.temperature = 1, .repetition_penalty = 2};
  parameters.frequency_penalty = 0.5;
  const std::vector<int> prompt = {0, 1}, output = {2, 3};
  const auto probabilities = [&](std::int64_t window) {
    parameters.penalty_window = window;
    return Sampler().distribution(logits, parameters, prompt, output).probabilities;
  };
  const std::vector<double> none = probabilities(0), last = probabilities(1), three = probabilities(3);
  EXPECT_EQ(none, (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(last[0], last[2]);
  EXPECT_LT(last[3], last[2]) << "the last token alone";
  EXPECT_LT(three[1], three[0]) << "and one of the prompt";
  EXPECT_LT(three[2], three[1]) << "the frequency counts the output";
  EXPECT_EQ(probabilities(4), probabilities(-1));
  EXPECT_EQ(probabilities(100), probabilities(-1));
  parameters.penalty_window = -2;
  EXPECT_NE(message_of([&] { parameters.check(); }).find("penalty_window"), std::string::npos);
}

TEST(Sampler, AppliesTheTemperatureWhereTheOrderHasIt) {
  const std::vector<float> logits = {2, 1, 0};
  SamplingParameters parameters{.temperature = 4, .top_p = 0.6};
  // Of the logits themselves the first token has 0.67 of the probability, and 0.42 of those at this temperature.
  EXPECT_EQ(Sampler().distribution(logits, parameters, {}, {}).ids, (std::vector<int>{0, 1}));
  parameters.order = kLlamaOrder;
  EXPECT_EQ(Sampler().distribution(logits, parameters, {}, {}).ids, (std::vector<int>{0}));
  parameters.top_p = 1;
  const Distribution last = Sampler().distribution(logits, parameters, {}, {});
  parameters.order = kVllmOrder;
  EXPECT_EQ(last.probabilities, Sampler().distribution(logits, parameters, {}, {}).probabilities);
  // A division that overflows leaves the largest logit alone.
  parameters = {.temperature = 0.01, .order = kLlamaOrder};
  EXPECT_EQ(Sampler().distribution(std::vector<float>{3e38F, 1, -3e38F}, parameters, {}, {}).ids,
            (std::vector<int>{0}));
}

TEST(Sampler, TakesWhatTheMakersOfAModelAskForUnlessTheyAskForGreedy) {
  GenerationConfig config{.temperature = 0.6, .top_k = 50, .repetition_penalty = 1.1};
  const SamplingParameters asked = sampling_of(config);
  EXPECT_EQ(asked.temperature, 0.6);
  EXPECT_EQ(asked.top_k, 50);
  EXPECT_EQ(asked.top_p, 1) << "not said";
  EXPECT_EQ(asked.repetition_penalty, 1.1);
  config.do_sample = false;
  EXPECT_EQ(sampling_of(config).temperature, 0);
  EXPECT_EQ(sampling_of(config).repetition_penalty, 1);
}

TEST(Sampler, RefusesParametersOutOfRange) {
  EXPECT_THROW(SamplingParameters{.temperature = -1}.check(), UserError);
  EXPECT_THROW(SamplingParameters{.top_k = -2}.check(), UserError);
  EXPECT_THROW(SamplingParameters{.top_p = 0}.check(), UserError);
  EXPECT_NO_THROW(SamplingParameters{.top_p = 1e-300}.check());
  EXPECT_THROW(SamplingParameters{.min_p = 1.5}.check(), UserError);
  EXPECT_THROW(SamplingParameters{.repetition_penalty = 0}.check(), UserError);
  EXPECT_THROW(SamplingParameters{.max_tokens = 0}.check(), UserError);
  const auto message = [](const SamplingParameters& parameters) { return message_of([&] { parameters.check(); }); };
  EXPECT_EQ(message({.top_k = 9999999999}), "[top_k] must be at most 2147483647, but is 9999999999");
  EXPECT_EQ(message({.max_tokens = 9999999999}), "[max_tokens] must be at most 2147483647, but is 9999999999");
  EXPECT_THROW(Sampler().sample(std::vector<float>{NAN, NAN}, {}, {}, {}), UserError);
}

TEST(Sampler, DrawsEachTokenAboutAsOftenAsItIsLikely) {
  const std::vector<float> logits = {0, std::log(3.0f)};
  int ones = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    SamplingParameters parameters{.temperature = 1};
    parameters.seed = seed;
    ones += Sampler().sample(logits, parameters, {}, {});
  }
  EXPECT_NEAR(ones / 4000.0, 0.75, 0.03);
}

}  // namespace weft::sampler_test
