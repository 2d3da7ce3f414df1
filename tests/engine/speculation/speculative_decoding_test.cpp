// Speculative decoding gives the answers that decoding token by token gives, in fewer steps.

#include <map>

#include <gtest/gtest.h>

#include "tests/engine/tiny_model.h"

namespace weft::speculative_decoding_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

struct Answer {
  std::vector<int> tokens;
  std::string text;
  std::vector<float> logprobs;
  FinishReason finished = FinishReason::none;
  bool operator==(const Answer&) const = default;
};

struct Outcome {
  std::vector<Answer> answers;
  int steps = 0;
  EngineStatistics statistics;
};

// What is proposed: nothing; what followed the last tokens before; what the model itself says, so that all guesses but
// those at a temperature are right; what another model of random weights says, whose guesses are seldom right.
enum class By : std::uint8_t { nothing, look_up, same_model, other_model };
constexpr By kProposers[] = {By::look_up, By::same_model, By::other_model};

class SpeculativeDecoding : public ::testing::Test {
 protected:
  std::string config_of(By proposer) const {
    if (proposer == By::nothing) return "";
    if (proposer == By::look_up)
      return R"({"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":3,"prompt_lookup_min":1})";
    const std::string& model = proposer == By::same_model ? path_ : other_path_;
    return R"({"method":"draft_model","num_speculative_tokens":4,"model":")" + model + "\"}";
  }
  Outcome run(const std::vector<SamplingParameters>& requests, By proposer, Settings settings = {}) const {
    settings.emplace_back("speculative-config", config_of(proposer));
    const auto engine = tiny_engine(path_, settings);
    Outcome result;
    result.answers.resize(requests.size());
    std::map<int, std::size_t> places;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      // Prompts that repeat themselves, so that there is something to look up.
      std::vector<int> prompt = some_ids(9, static_cast<int>(i)), again = prompt;
      prompt.insert(prompt.end(), again.begin(), again.end());
      places[engine->add(prompt, requests[i])] = i;
    }
    for (; !engine->is_idle(); ++result.steps)
      for (const RequestEvent& event : engine->step()) {
        Answer& answer = result.answers[places.at(event.request)];
        EXPECT_EQ(answer.finished, FinishReason::none) << "an event after the last";
        EXPECT_EQ(event.error, "");
        answer.tokens.push_back(event.token);
        answer.text += event.text;
        answer.finished = event.finished;
        if (event.logprobs) answer.logprobs.push_back(event.logprobs->chosen.logprob);
      }
    result.statistics = engine->statistics();
    return result;
  }
  void expect_same(const std::vector<SamplingParameters>& requests, const Settings& settings = {}) const {
    const Outcome without = run(requests, By::nothing, settings);
    EXPECT_EQ(without.statistics.proposed_tokens, 0);
    for (const By proposer : kProposers) {
      SCOPED_TRACE(config_of(proposer));
      const Outcome with = run(requests, proposer, settings);
      EXPECT_EQ(with.answers, without.answers);
      EXPECT_GT(with.statistics.proposed_tokens, 0);
      EXPECT_LE(with.statistics.kept_tokens, with.statistics.proposed_tokens);
    }
  }

  const TemporaryFolder folder_, other_folder_;
  const std::string path_ = write_tiny_model(folder_), other_path_ = write_tiny_model(other_folder_, 2);
};

SamplingParameters greedy(std::int64_t tokens) {
  SamplingParameters parameters;
  parameters.max_tokens = tokens;
  parameters.ignore_end = true;
  return parameters;
}

TEST_F(SpeculativeDecoding, GivesTheSameAnswers) {
  SamplingParameters drawn = greedy(40), penalized = greedy(40), stopped = greedy(60), reported = greedy(30);
  drawn.temperature = 1.5;
  drawn.seed = 7;
  drawn.top_k = 40;
  penalized.repetition_penalty = 1.3;
  penalized.frequency_penalty = 0.5;
  stopped.stop_ids = {17, 101, 32, 200};
  reported.logprobs = 2;
  const std::vector<SamplingParameters> all{greedy(1), greedy(2), greedy(50), drawn, penalized, stopped, reported};
  for (const SamplingParameters& one : all)
    for (const By proposer : kProposers)
      EXPECT_EQ(run({one}, proposer).answers, run({one}, By::nothing).answers) << one.max_tokens;
  expect_same(all);
  expect_same(all, {{"max-num-batched-tokens", "9"}});
  expect_same(all, {{"block-size", "1"}});
  expect_same(all, {{"enforce-eager", "true"}});
  expect_same(all, {{"max-num-seqs", "2"}});
  expect_same(all, {{"activation-precision", "prompt=bf16,decode=int8"}});
}

// Sequences lose their pages; a draft takes them from nobody.
TEST_F(SpeculativeDecoding, GivesTheSameAnswersWhilePagesRunOut) {
  expect_same({greedy(40), greedy(45), greedy(50)},
              {{"block-size", "2"}, {"max-model-len", "80"}, {"num-gpu-blocks-override", "45"}});
}

// A greedy answer of a small model soon repeats itself.
TEST_F(SpeculativeDecoding, TakesFewerSteps) {
  const Outcome without = run({greedy(100)}, By::nothing), with = run({greedy(100)}, By::look_up);
  EXPECT_EQ(without.steps, 100);
  EXPECT_EQ(with.answers, without.answers);
  EXPECT_GT(with.statistics.kept_tokens, 0);
  EXPECT_EQ(with.steps, 100 - with.statistics.kept_tokens);
}

// The first token follows the prompt, and the others come five at a time.
TEST_F(SpeculativeDecoding, KeepsAllGuessesOfTheSameModel) {
  const Outcome with = run({greedy(101)}, By::same_model);
  EXPECT_EQ(with.statistics.kept_tokens, with.statistics.proposed_tokens);
  EXPECT_EQ(with.statistics.kept_tokens, 80);
  EXPECT_EQ(with.steps, 21);
}

}  // namespace weft::speculative_decoding_test
