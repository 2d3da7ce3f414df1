// What a second model that proposes tokens may be, and what it keeps.

#include "engine/speculation/draft_model.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/engine/tiny_model.h"

namespace weft::draft_model_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

class DraftModel : public ::testing::Test {
 protected:
  static Settings with(const std::string& model, Settings settings = {}) {
    settings.emplace_back("draft-model", model);
    settings.emplace_back("num-draft-tokens", "4");
    return settings;
  }
  // The message of the error that opening gives.
  std::string refusal(const std::string& model) const {
    try {
      tiny_engine(path_, with(model));
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  }
  static SamplingParameters greedy(std::int64_t tokens) {
    SamplingParameters parameters;
    parameters.max_tokens = tokens;
    parameters.ignore_end = true;
    return parameters;
  }
  // The model with the texts of two tokens swapped.
  std::string other_vocabulary() const {
    std::stringstream content;
    content << std::ifstream(path_, std::ios::binary).rdbuf();
    std::string bytes = content.str();
    const std::string one = std::string("\1\0\0\0\0\0\0\0", 8), first = one + "0", second = one + "1";
    const std::size_t at = bytes.find(first + second);
    EXPECT_NE(at, std::string::npos);
    bytes.replace(at, first.size() + second.size(), second + first);
    const std::string path = other_folder_ / "swapped.gguf";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  const TemporaryFolder folder_, other_folder_;
  const std::string path_ = write_tiny_model(folder_);
};

TEST_F(DraftModel, MustHaveTheSameVocabulary) {
  const std::string message = refusal(other_vocabulary());
  EXPECT_NE(message.find("token"), std::string::npos) << message;
  EXPECT_NE(message.find("swapped.gguf"), std::string::npos) << message;
  EXPECT_EQ(refusal(write_tiny_model(other_folder_, 2, {"more"})), "none") << "tokens beyond those of both";
}

TEST_F(DraftModel, MustGenerateTextAndGoBack) {
  const std::string recurrent = write_config_only(other_folder_, "lfm2", nlohmann::json::object());
  const std::string encoder = write_config_only(other_folder_, "bert", nlohmann::json::object());
  const auto message = [&](const std::string& model) -> std::string {
    try {
      tiny_engine(write_config_only(other_folder_, "llama", nlohmann::json::object()),
                  with(model, {{"load-format", "dummy"}}));
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_NE(message(recurrent).find("recurrent layers"), std::string::npos) << message(recurrent);
  EXPECT_NE(message(encoder).find("generates no text"), std::string::npos) << message(encoder);
}

TEST_F(DraftModel, IsNamedInTheNotes) {
  const auto engine = tiny_engine(path_, with(path_));
  ASSERT_FALSE(engine->notes().empty());
  EXPECT_NE(engine->notes().back().find(path_), std::string::npos);
}

// Beyond its context it proposes nothing.
TEST_F(DraftModel, MayHaveAShorterContext) {
  const std::string config = R"({"num_speculative_tokens": 4, "max_model_len": 30, "model": ")" + path_ + "\"}";
  const auto engine = tiny_engine(path_, {{"speculative-config", config}});
  const auto alone = tiny_engine(path_);
  const std::vector<int> prompt = some_ids(20);
  EXPECT_EQ(engine->generate(prompt, greedy(40)).tokens, alone->generate(prompt, greedy(40)).tokens);
  const EngineStatistics statistics = engine->statistics();
  EXPECT_GT(statistics.proposed_tokens, 0);
  EXPECT_LE(statistics.proposed_tokens, 10);
}

// Cancelled and finished requests give their pages back, also while others go on.
TEST_F(DraftModel, ServesOneRequestAfterAnother) {
  const auto engine = tiny_engine(path_, with(path_, {{"block-size", "4"}, {"max-num-seqs", "3"}}));
  const auto alone = tiny_engine(path_);
  std::vector<int> cancelled;
  for (int round = 0; round < 20; ++round) {
    cancelled.push_back(engine->add(some_ids(30, round), greedy(60)));
    for (int step = 0; step < 3; ++step) engine->step();
    if (round % 2 == 0) engine->cancel(cancelled.back());
  }
  for (const int request : cancelled) engine->cancel(request);
  ASSERT_TRUE(engine->is_idle());
  const std::vector<int> prompt = some_ids(25, 7);
  EXPECT_EQ(engine->generate(prompt, greedy(50)).tokens, alone->generate(prompt, greedy(50)).tokens);
}

// The model itself proposes, but the request has penalties. So guesses are refused where another token than the most
// likely one is sampled, and all others are right, as the model goes on from what was sampled.
TEST_F(DraftModel, GoesOnFromWhatWasSampled) {
  const auto engine = tiny_engine(path_, with(path_));
  const auto alone = tiny_engine(path_);
  const std::vector<int> prompt = some_ids(20);
  SamplingParameters parameters = greedy(61);
  parameters.frequency_penalty = 0.1F;
  const std::vector<int> answer = engine->generate(prompt, parameters).tokens;
  EXPECT_EQ(answer, alone->generate(prompt, parameters).tokens);

  std::vector<int> all = prompt;
  all.insert(all.end(), answer.begin(), answer.end());
  std::vector<bool> is_guessed;  // for each token of the answer
  const auto logits = all_logits(*alone, all);
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const auto& row = logits[prompt.size() + i - 1];
    is_guessed.push_back(std::max_element(row.begin(), row.end()) - row.begin() == answer[i]);
  }
  const auto refused = std::count(is_guessed.begin(), is_guessed.end(), false);
  ASSERT_GT(refused, 3);
  ASSERT_LT(refused, 25);
  std::int64_t kept = 0;
  for (std::size_t at = 1; at < answer.size(); ++at)
    for (const std::size_t end = std::min(at + 4, answer.size() - 1); at < end && is_guessed[at]; ++at) ++kept;
  EXPECT_EQ(engine->statistics().kept_tokens, kept);
}

TEST_F(DraftModel, RunsOnADevice) {
  const auto engine = tiny_engine(path_, with(path_, {{"device", "fake-cuda"}}));
  const auto alone = tiny_engine(path_, {{"device", "fake-cuda"}});
  const std::vector<int> prompt = some_ids(12);
  EXPECT_EQ(engine->generate(prompt, greedy(12)).tokens, alone->generate(prompt, greedy(12)).tokens);
  EXPECT_GT(engine->statistics().kept_tokens, 0);
}

}  // namespace weft::draft_model_test
