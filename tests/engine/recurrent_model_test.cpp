// What an engine does for a model with recurrent layers. That all models give the same answers with the prefix cache
// and in every mode is in tests of all models.

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "tensor/kv_pages.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::recurrent_model_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

class RecurrentModel : public ::testing::Test {
 protected:
  std::string written(const std::string& architecture, int context = 128) {
    const SampleCheckpoint sample(models_.find(architecture, "test"),
                                  {{"model_type", architecture}, {"max_position_embeddings", context}}, 3);
    return sample.write_gguf(folder_, architecture + ".gguf", DType::bf16);
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
};

const char* const kArchitectures[] = {"lfm2", "qwen3_next", "qwen3_5_text"};

// A model may have neither attention nor states: its tokens do not see each other.
TEST_F(RecurrentModel, MayHaveFeedForwardsAlone) {
  const ModelDefinition& model = models_.find("nemotron_h", "test");
  const SampleCheckpoint sample(model, {{"layers_block_type", {"mlp", "moe"}}});
  const std::string path = sample.write_folder(folder_, "feed_forwards", DType::f32);
  const std::vector<int> ids = some_ids(9);
  for (const char* is_eager : {"false", "true"}) {
    const auto engine = tiny_engine(path, {{"enforce-eager", is_eager}});
    EXPECT_EQ(all_logits(*engine, ids)[8], all_logits(*engine, {ids[8]})[0]);
  }
}

// A page has the states of all layers, so a page of 16 tokens would be nearly all states.
TEST_F(RecurrentModel, HasPagesOfMoreTokens) {
  EXPECT_EQ(tiny_engine(write_tiny_model(folder_))->page_tokens(), 16);
  for (const char* architecture : kArchitectures) {
    const std::string path = written(architecture);
    const auto engine = tiny_engine(path);
    std::map<int, std::int64_t> bytes;
    const ModelFacts& facts = engine->runner().facts();
    for (const LayerPages& pages : facts.pages()) bytes[pages.layer] += kv_page_bytes(pages.layout);
    EXPECT_GE(bytes.at(1), bytes.at(0)) << architecture << ": keys and values, and a state";
    EXPECT_EQ(engine->page_tokens() % 32, 16);
    EXPECT_EQ(tiny_engine(path, {{"block-size", "4"}})->page_tokens(), 4);
    EXPECT_EQ(tiny_engine(path, {{"max-model-len", "16"}})->page_tokens(), 16) << "no more than the context";
  }
}

// Requests that come and go, whose pages are taken for others, with chunks of prompts and padded steps.
TEST_F(RecurrentModel, AnswersAsAloneWherePagesAreScarce) {
  const SamplingParameters parameters{.temperature = 0.8, .seed = 4, .max_tokens = 12, .ignore_end = true};
  for (const char* architecture : kArchitectures) {
    const std::string path = written(architecture);
    const auto alone = tiny_engine(path, {{"enable-prefix-caching", "false"}, {"max-num-seqs", "1"}});
    for (const char* pads : {"false", "true"}) {
      const auto engine = tiny_engine(
          path, {{"block-size", "4"}, {"max-num-seqs", "5"}, {"max-num-batched-tokens", "13"}, {"pad-steps", pads}});
      engine->limit_pages(32);
      std::map<int, std::vector<int>> prompts, answers;
      for (int i = 0; i < 9; ++i) {
        const std::vector<int> prompt = some_ids(5 + 4 * i, i % 3);
        prompts[engine->add({.prompt = std::make_shared<const std::vector<int>>(prompt), .parameters = parameters})] =
            prompt;
      }
      while (!engine->is_idle())
        for (const RequestEvent& event : engine->step()) answers[event.request].push_back(event.token);
      EXPECT_GT(engine->statistics().preemptions, 0);
      for (const auto& [request, prompt] : prompts)
        EXPECT_EQ(answers[request], alone->generate(prompt, parameters).tokens) << architecture << " " << request;
    }
  }
}

std::vector<int> joined(std::vector<int> first, const std::vector<int>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Blocks are longer than the conversation. A template writes the last tokens of a prompt again when there is an answer,
// or the answer is continued as it is.
TEST_F(RecurrentModel, ContinuesConversationsFromCheckpoints) {
  const SamplingParameters parameters{.temperature = 0.8, .seed = 4, .max_tokens = 70, .ignore_end = true};
  for (const char* architecture : kArchitectures) {
    const std::string path = written(architecture, 512);
    const Settings sizes{{"block-size", "512"}, {"max-model-len", "512"}, {"max-num-batched-tokens", "48"}};
    const auto engine = tiny_engine(path, sizes);
    Settings without = sizes;
    without.emplace_back("enable-prefix-caching", "false");
    const auto alone = tiny_engine(path, without);
    const std::vector<int> question = some_ids(100, 1), begin = some_ids(16, 2);
    const auto ask = [&](const std::vector<int>& prompt, std::int64_t cached) {
      const Engine::Generation answer = engine->generate(prompt, parameters);
      EXPECT_EQ(answer.cached_tokens, cached) << architecture;
      EXPECT_EQ(answer.tokens, alone->generate(prompt, parameters).tokens) << architecture;
      return answer.tokens;
    };
    const std::vector<int> prompt = joined(question, begin), answer = ask(prompt, 0);
    EXPECT_EQ(ask(prompt, 100), answer) << "the checkpoint serves several requests";
    ask(joined(question, some_ids(50, 3)), 100);
    ask(joined(joined(prompt, answer), some_ids(5, 4)), 185);
    ask(joined(some_ids(99, 1), begin), 0);
    EXPECT_TRUE(engine->reset_prefix_cache());
    ask(prompt, 0);
  }
}

TEST_F(RecurrentModel, RefusesProposalsOfTokens) {
  const Settings settings{{"speculative-config", R"({"method": "ngram", "num_speculative_tokens": 3})"}};
  const std::string message = message_of([&] { tiny_engine(written("lfm2"), settings); });
  EXPECT_NE(message.find("[--speculative-config]"), std::string::npos) << message;
  EXPECT_NE(message.find("recurrent layers"), std::string::npos) << message;
}

}  // namespace weft::recurrent_model_test
