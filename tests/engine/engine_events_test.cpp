// What the events of a request have: log probabilities, and answers whose tokens are masked.

#include <map>

#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/engine.h"
#include "tests/engine/tiny_model.h"

namespace weft::engine_events_test {

struct Answer {
  std::vector<int> tokens;
  std::string text, error;
  std::vector<TokenLogprobs> logprobs, prompt_logprobs;
  FinishReason finished = FinishReason::none;
};

class EngineEvents : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = write_tiny_model(folder_);
};

// The answers of requests that run together.
std::map<int, Answer> run_all(Engine& engine) {
  std::map<int, Answer> answers;
  while (!engine.is_idle())
    for (const RequestEvent& event : engine.step()) {
      Answer& answer = answers[event.request];
      answer.finished = event.finished;
      answer.error = event.error;
      if (event.finished == FinishReason::failed) continue;
      answer.tokens.push_back(event.token);
      answer.text += event.text;
      if (event.logprobs) answer.logprobs.push_back(*event.logprobs);
      if (!event.prompt_logprobs.empty()) answer.prompt_logprobs = event.prompt_logprobs;
    }
  return answers;
}

Answer run(Engine& engine, const std::vector<int>& prompt, const SamplingParameters& parameters) {
  const int id = engine.add(prompt, parameters);
  return run_all(engine)[id];
}

// With the bits of the numbers.
std::vector<double> numbers(const std::vector<TokenLogprobs>& logprobs) {
  std::vector<double> all;
  for (const TokenLogprobs& one : logprobs) {
    all.insert(all.end(), {static_cast<double>(one.chosen.id), one.chosen.logprob, static_cast<double>(one.rank)});
    for (const TokenLogprob& top : one.top) all.insert(all.end(), {static_cast<double>(top.id), top.logprob});
  }
  return all;
}

SamplingParameters scored(std::int64_t tokens) {
  return {.temperature = 0.9, .seed = 4, .max_tokens = tokens, .ignore_end = true, .logprobs = 3, .prompt_logprobs = 2};
}

TEST_F(EngineEvents, LogprobsAreThoseOfTheLogitsOfEachPosition) {
  const auto engine = tiny_engine(path_);
  const std::vector<int> prompt = some_ids(70);
  const Answer answer = run(*engine, prompt, scored(6));
  std::vector<int> all = prompt;
  all.insert(all.end(), answer.tokens.begin(), answer.tokens.end());
  const std::vector<std::vector<float>> logits = all_logits(*engine, all);
  std::vector<TokenLogprobs> wanted{{.chosen = {.id = prompt[0]}}};
  for (std::size_t i = 1; i < prompt.size(); ++i) wanted.push_back(logprobs_of(logits[i - 1], all[i], 2));
  EXPECT_EQ(numbers(answer.prompt_logprobs), numbers(wanted));
  wanted.clear();
  for (std::size_t i = prompt.size(); i < all.size(); ++i) wanted.push_back(logprobs_of(logits[i - 1], all[i], 3));
  EXPECT_EQ(numbers(answer.logprobs), numbers(wanted));
}

// Beside others, with prompts cut in chunks, and where requests lose their pages and start over.
TEST_F(EngineEvents, LogprobsHaveTheSameBitsAloneAndBesideOthers) {
  const std::vector<int> prompt = some_ids(50, 5);
  const Answer alone = run(*tiny_engine(path_), prompt, scored(30));
  ASSERT_EQ(alone.prompt_logprobs.size(), prompt.size());
  ASSERT_EQ(alone.logprobs.size(), 30U);
  for (const char* rows : {"512", "7"})
    for (const std::int64_t pages : {64, 12}) {
      const auto engine = tiny_engine(path_, {{"max-num-batched-tokens", rows}, {"max-num-seqs", "5"}});
      engine->limit_pages(pages);
      engine->add(some_ids(60, 2), {.max_tokens = 40, .ignore_end = true});
      const int before = engine->add(prompt, scored(30));
      engine->add({1, 2}, {.max_tokens = 20, .ignore_end = true, .allowed_ids = std::vector<int>{5, 6}});
      const int after = engine->add(prompt, scored(30));
      std::map<int, Answer> answers = run_all(*engine);
      for (const int id : {before, after}) {
        EXPECT_EQ(answers[id].tokens, alone.tokens) << rows << " " << pages;
        EXPECT_EQ(numbers(answers[id].logprobs), numbers(alone.logprobs)) << rows << " " << pages;
        EXPECT_EQ(numbers(answers[id].prompt_logprobs), numbers(alone.prompt_logprobs)) << rows << " " << pages;
      }
    }
}

TEST_F(EngineEvents, LogprobsAreThoseBeforeMasksPenaltiesAndTemperature) {
  const auto engine = tiny_engine(path_);
  SamplingParameters plain{.max_tokens = 1, .ignore_end = true, .logprobs = -1};
  const Answer wanted = run(*engine, some_ids(9), plain);
  SamplingParameters changed = plain;
  changed.temperature = 0.5;
  changed.repetition_penalty = 3;
  changed.allowed_ids = std::vector<int>{40};
  changed.logit_bias = {{wanted.tokens[0], -100}};
  const Answer masked = run(*engine, some_ids(9), changed);
  EXPECT_EQ(masked.tokens, std::vector<int>{40});
  ASSERT_EQ(masked.logprobs[0].top.size(), 257U);
  for (std::size_t i = 0; i < 257; ++i) {
    EXPECT_EQ(masked.logprobs[0].top[i].id, wanted.logprobs[0].top[i].id);
    EXPECT_EQ(masked.logprobs[0].top[i].logprob, wanted.logprobs[0].top[i].logprob);
  }
  EXPECT_GT(masked.logprobs[0].rank, 1);
  EXPECT_EQ(masked.logprobs[0].chosen.logprob,
            masked.logprobs[0].top[static_cast<std::size_t>(masked.logprobs[0].rank - 1)].logprob);
}

TEST_F(EngineEvents, ARequestWhoseMasksLeaveNoTokenFailsAlone) {
  const auto engine = tiny_engine(path_);
  const Answer alone = run(*engine, some_ids(9), {.max_tokens = 8, .ignore_end = true});
  const int failing =
      engine->add({1, 2}, {.max_tokens = 8, .min_tokens = 4, .allowed_ids = std::vector<int>{256}});  // the end
  const int other = engine->add(some_ids(9), {.max_tokens = 8, .ignore_end = true});
  std::map<int, Answer> answers = run_all(*engine);
  EXPECT_EQ(answers[failing].finished, FinishReason::failed);
  EXPECT_NE(answers[failing].error.find("no token"), std::string::npos) << answers[failing].error;
  EXPECT_EQ(answers[other].tokens, alone.tokens);
}

TEST_F(EngineEvents, AnAnswerHasAtLeastMinTokens) {
  const auto engine = tiny_engine(path_);
  SamplingParameters parameters{.max_tokens = 20, .logit_bias = {{256, 1000}}};  // the end
  EXPECT_EQ(run(*engine, some_ids(9), parameters).tokens, std::vector<int>{256});
  parameters.min_tokens = 5;
  const Answer longer = run(*engine, some_ids(9), parameters);
  EXPECT_EQ(longer.tokens.size(), 6U);
  EXPECT_EQ(longer.tokens[5], 256);
  EXPECT_EQ(longer.finished, FinishReason::stop);
  // 'a' alone, which is a stop text as well.
  const SamplingParameters letters{
      .max_tokens = 9, .ignore_end = true, .stop = {"aa"}, .min_tokens = 4, .allowed_ids = std::vector<int>{'a'}};
  const Answer stopped = run(*engine, some_ids(9), letters);
  EXPECT_EQ(stopped.tokens.size(), 5U);
  EXPECT_EQ(stopped.text, "aaa");
  EXPECT_EQ(stopped.finished, FinishReason::stop);
}

TEST_F(EngineEvents, StopsAndSpecialTokensAreShownIfAsked) {
  const auto engine = tiny_engine(path_);
  SamplingParameters text{.max_tokens = 9, .stop = {"aa"}, .allowed_ids = std::vector<int>{'a'}};
  EXPECT_EQ(run(*engine, {1}, text).text, "");
  text.includes_stop = true;
  EXPECT_EQ(run(*engine, {1}, text).text, "aa");
  SamplingParameters id{.max_tokens = 9, .stop_ids = {'b'}, .allowed_ids = std::vector<int>{'b'}};
  EXPECT_EQ(run(*engine, {1}, id).text, "");
  id.includes_stop = true;
  EXPECT_EQ(run(*engine, {1}, id).text, "b");
  SamplingParameters special{.max_tokens = 2, .ignore_end = true, .allowed_ids = std::vector<int>{256}};
  EXPECT_EQ(run(*engine, {1}, special).text, "");
  special.skips_special = false;
  EXPECT_EQ(run(*engine, {1}, special).text, "<end><end>");
  special.ignore_end = false;
  EXPECT_EQ(run(*engine, {1}, special).text, "") << "of an end there is no text";
}

TEST_F(EngineEvents, RefusesTokensOutsideTheVocabulary) {
  const auto engine = tiny_engine(path_);
  const SamplingParameters wrong[] = {{.allowed_ids = std::vector<int>{257}},
                                      {.bad_words = {{1, -1}}},
                                      {.logit_bias = {{300, 1}}},
                                      {.max_tokens = 3, .min_tokens = 4},
                                      {.allowed_ids = std::vector<int>{}},
                                      {.logprobs = -2}};
  for (const SamplingParameters& parameters : wrong) EXPECT_THROW(engine->add({1}, parameters), UserError);
  EXPECT_TRUE(engine->is_idle());
}

}  // namespace weft::engine_events_test
