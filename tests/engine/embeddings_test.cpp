// Embeddings: the hidden states before the head, however a text is cut into steps.

#include <cmath>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::embeddings_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

class Embeddings : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> engine(const Settings& given = {}) const {
    Settings settings{{"block-size", "4"}, {"kv-cache-dtype", "f32"}, {"activation-precision", "exact"}};
    settings.insert(settings.end(), given.begin(), given.end());
    return tiny_engine(path_, settings);
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
  const std::string path_ = SampleCheckpoint(models_.find("qwen3", "test"), {{"tie_word_embeddings", false}})
                                .write_folder(folder_, "qwen3", DType::f32);
};

// Logits are the products of the head's rows and the hidden states.
TEST_F(Embeddings, AreTheHiddenStatesOfWhichLogitsAreMade) {
  const auto one = engine();
  const std::vector<int> ids = some_ids(11);
  const auto logits = all_logits(*one, ids);
  const Checkpoint checkpoint = Checkpoint::open(path_);
  const Tensor& head = checkpoint.tensor("lm_head.weight");
  const auto difference = [&](const std::vector<float>& hidden, const std::vector<float>& wanted) {
    double most = 0;
    for (std::size_t row = 0; row < wanted.size(); ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < hidden.size(); ++i)
        sum += double{hidden[i]} * double{head.as<float>()[row * hidden.size() + i]};
      most = std::max(most, std::abs(sum - double{wanted[row]}));
    }
    return most;
  };
  EXPECT_LT(difference(one->embed(ids, Pooling::last), logits.back()), 1e-4);
  EXPECT_LT(difference(one->embed(ids, Pooling::cls), logits.front()), 1e-4);
  std::vector<float> mean(logits[0].size());
  for (const auto& row : logits)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += row[i] / static_cast<float>(logits.size());
  EXPECT_LT(difference(one->embed(ids, Pooling::mean), mean), 1e-4);
}

TEST_F(Embeddings, DoNotDependOnStepsNeighboursOrTheCache) {
  const auto alone = engine();
  for (const Pooling pooling : {Pooling::last, Pooling::mean, Pooling::cls}) {
    std::vector<std::vector<float>> wanted;
    for (int i = 0; i < 6; ++i) wanted.push_back(alone->embed(some_ids(3 + 5 * i, i % 2), pooling));
    for (const Settings& settings : {Settings{}, Settings{{"max-num-batched-tokens", "5"}, {"max-num-seqs", "3"}},
                                     Settings{{"enforce-eager", "true"}}, Settings{{"pad-steps", "true"}}}) {
      const auto together = engine(settings);
      if (settings.size() > 1) together->limit_pages(32);
      for (int round = 0; round < 2; ++round) {
        std::map<int, std::vector<float>> came;
        std::vector<int> requests;
        for (int i = 0; i < 6; ++i) {
          requests.push_back(
              together->add({.prompt = std::make_shared<const std::vector<int>>(some_ids(3 + 5 * i, i % 2)),
                             .parameters = {.max_tokens = 1},
                             .pooling = pooling}));
          together->add(some_ids(9, i), {.max_tokens = 6, .ignore_end = true});
        }
        while (!together->is_idle())
          for (const RequestEvent& event : together->step()) {
            ASSERT_NE(event.finished, FinishReason::failed) << event.error;
            if (event.embedding) came[event.request] = *event.embedding;
          }
        for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(came[requests[i]], wanted[i]) << i;
      }
    }
  }
}

// The head is not computed for them.
TEST_F(Embeddings, NeedNoLogits) {
  const auto one = engine();
  one->embed(some_ids(20), Pooling::last);
  EXPECT_EQ(one->runner().replay_report().runs, 1) << "of the forward alone";
}

}  // namespace weft::embeddings_test
