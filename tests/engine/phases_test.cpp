// --activation-precision bf16, for all rows or for those of one phase: the bits of an answer do not depend on how its
// rows came together, and a row is computed as its token's origin says.

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::phases_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kPrecisions[] = {"bf16", "prompt=bf16,decode=int8", "prompt=int8,decode=bf16"};

Settings with(const char* precision, const Settings& more = {}) {
  Settings settings{{"activation-precision", precision}, {"block-size", "4"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

SamplingParameters greedy(std::int64_t tokens) {
  return {.temperature = 0, .max_tokens = tokens, .ignore_end = true, .logprobs = 2, .prompt_logprobs = 0};
}

// What each request gave: its tokens with the bits of their log probabilities.
using Answers = std::map<int, std::vector<std::pair<int, float>>>;

Answers run_all(Engine& engine) {
  Answers answers;
  while (!engine.is_idle())
    for (const RequestEvent& event : engine.step()) {
      EXPECT_EQ(event.error, "");
      answers[event.request].emplace_back(event.token, event.logprobs->chosen.logprob);
    }
  return answers;
}

std::vector<std::pair<int, float>> answer_of(const std::string& path, const Settings& settings,
                                             const std::vector<int>& prompt, std::int64_t tokens = 20) {
  const auto engine = tiny_engine(path, settings);
  engine->add(prompt, greedy(tokens));
  return run_all(*engine).at(0);
}

class PhasesTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = write_tiny_model(folder_);
};

TEST_F(PhasesTest, AnswersDoNotDependOnChunkingThreadsModesOrDrafts) {
  const std::vector<Settings> variants = {
      {{"max-num-batched-tokens", "1"}},
      {{"max-num-batched-tokens", "7"}},
      {{"threads", "3"}},
      {{"enforce-eager", "true"}},
      {{"cc.compile_ranges_split_points", "[4,16]"}},
      {{"speculative-config", R"({"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":3})"}},
  };
  for (const char* precision : kPrecisions) {
    const auto wanted = answer_of(path_, with(precision), some_ids(23));
    for (const Settings& variant : variants)
      EXPECT_EQ(answer_of(path_, with(precision, variant), some_ids(23)), wanted)
          << precision << " " << variant[0].first << "=" << variant[0].second;
  }
}

TEST_F(PhasesTest, AnswersDoNotDependOnNeighboursAndLostPages) {
  for (const char* precision : kPrecisions) {
    SCOPED_TRACE(precision);
    const auto first = answer_of(path_, with(precision), some_ids(60, 1), 60);
    const auto second = answer_of(path_, with(precision), some_ids(60, 2), 60);
    const auto engine = tiny_engine(path_, with(precision, {{"max-num-seqs", "2"}, {"max-model-len", "128"}}));
    engine->limit_pages(32 + 8);
    engine->add(some_ids(60, 1), greedy(60));
    engine->add(some_ids(60, 2), greedy(60));
    const Answers together = run_all(*engine);
    EXPECT_GT(engine->statistics().preemptions, 0);
    EXPECT_EQ(together.at(0), first);
    EXPECT_EQ(together.at(1), second);
  }
}

// The pages of an answer were computed as generated tokens, so a prompt with the same tokens does not take them.
TEST_F(PhasesTest, APromptThatHoldsAnAnswerIsComputedAsAPrompt) {
  for (const char* precision : kPrecisions) {
    SCOPED_TRACE(precision);
    const auto engine = tiny_engine(path_, with(precision, {{"enable-prefix-caching", "true"}}));
    SamplingParameters parameters = greedy(20);
    parameters.prompt_logprobs.reset();
    engine->add(some_ids(24), parameters);
    std::vector<int> prompt = some_ids(24);
    const Answers first = run_all(*engine);
    for (const auto& [token, logprob] : first.at(0)) prompt.push_back(token);
    engine->add(prompt, parameters);
    const auto came = run_all(*engine).at(1);
    EXPECT_EQ(came, answer_of(path_, with(precision), prompt));
    EXPECT_GE(engine->statistics().prefix_cache_hits, 24) << "the prompt of both";
  }
}

TEST_F(PhasesTest, TheOriginOfATokenDecidesHowItIsComputed) {
  const auto ids = some_ids(23);
  const auto bf16 = answer_of(path_, with("bf16"), ids), int8 = answer_of(path_, with("int8"), ids);
  const auto mixed = answer_of(path_, with("prompt=bf16,decode=int8"), ids);
  EXPECT_NE(bf16[0].second, int8[0].second);
  EXPECT_EQ(mixed[0], bf16[0]) << "computed from the prompt";
  ASSERT_EQ(mixed[0].first, bf16[0].first);
  EXPECT_NE(mixed[1].second, bf16[1].second) << "computed from the first generated token";
  EXPECT_EQ(all_logits(*tiny_engine(path_, with("prompt=bf16,decode=int8")), ids),
            all_logits(*tiny_engine(path_, with("bf16")), ids));
}

TEST_F(PhasesTest, Bf16IsNearerToExactThanInt8) {
  const auto ids = some_ids(60);
  const Settings f32{{"kv-cache-dtype", "f32"}};
  const auto exact = all_logits(*tiny_engine(path_, with("exact", f32)), ids);
  const double bf16 = logit_difference(all_logits(*tiny_engine(path_, with("bf16", f32)), ids), exact);
  const double int8 = logit_difference(all_logits(*tiny_engine(path_, with("int8", f32)), ids), exact);
  EXPECT_LT(bf16, int8 / 1.5);
  EXPECT_GT(bf16, 0);
}

// The op's own meaning over the dequantized weights, rounded to bf16, gives the same logits but for the order of sums,
// which may round an activation to the next bf16.
TEST_F(PhasesTest, EveryModelComputesWhatTheOpsMean) {
  const ModelRegistry models = make_model_registry();
  const Settings meaning{
      {"dtype", "f32"}, {"ir-op-priority.linear_bf16", "native"}, {"ir-op-priority.grouped_linear_bf16", "native"}};
  for (const std::string& architecture : text_architectures(models)) {
    SCOPED_TRACE(architecture);
    const SampleCheckpoint sample(models.find(architecture, "test"), {{"model_type", architecture}}, 12);
    const std::string path = sample.write_gguf(folder_, architecture + ".gguf", DType::q8_0);
    const auto came = all_logits(*tiny_engine(path, with("bf16", {{"dtype", "f32"}})), some_ids(5));
    EXPECT_LT(logit_difference(came, all_logits(*tiny_engine(path, with("bf16", meaning)), some_ids(5))), 1e-2);
  }
}

TEST_F(PhasesTest, WithoutBlocksNothingChangesAndThatIsSaid) {
  const ModelRegistry models = make_model_registry();
  const SampleCheckpoint sample(models.find("llama", "test"), {{"model_type", "llama"}}, 7);
  const std::string path = sample.write_gguf(folder_, "f32.gguf", DType::f32);
  const auto engine = tiny_engine(path, with("prompt=bf16,decode=int8"));
  EXPECT_FALSE(engine->runner().has_phases());
  const std::vector<std::string>& notes = engine->runner().notes();
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("stores no weight in blocks") != std::string::npos;
  }));
  EXPECT_EQ(all_logits(*engine, some_ids(9)), all_logits(*tiny_engine(path, with("fast")), some_ids(9)));
}

TEST_F(PhasesTest, IsForTheCpu) {
  EXPECT_THROW(tiny_engine(path_, with("bf16", {{"device", "fake-cuda"}})), UserError);
}

}  // namespace weft::phases_test
