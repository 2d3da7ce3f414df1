#include "engine/engine.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/engine/tiny_model.h"

namespace weft::engine_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

class EngineTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = write_tiny_model(folder_);
};

SamplingParameters greedy(std::int64_t tokens) {
  SamplingParameters parameters;
  parameters.max_tokens = tokens;
  parameters.ignore_end = true;
  return parameters;
}

// Tokens of requests that run together.
std::map<int, std::vector<int>> run_all(Engine& engine) {
  std::map<int, std::vector<int>> tokens;
  while (!engine.is_idle())
    for (const RequestEvent& event : engine.step()) tokens[event.request].push_back(event.token);
  return tokens;
}

TEST_F(EngineTest, EagerGivesTheBitsOfTheCompiledModel) {
  for (const char* precision : {"fast", "exact"}) {
    const Settings base{{"activation-precision", precision}};
    Settings eager = base;
    eager.emplace_back("enforce-eager", "true");
    const auto ids = some_ids(23);
    EXPECT_EQ(all_logits(*tiny_engine(path_, base), ids), all_logits(*tiny_engine(path_, eager), ids)) << precision;
  }
}

TEST_F(EngineTest, EveryInstructionSetGivesTheSameBitsEagerAndCompiled) {
  for (const char* features : {"baseline", "avx2", "avx512", "vnni", "bf16"}) {
    const Settings base{{"cpu-features", features}};
    Settings eager = base;
    eager.emplace_back("enforce-eager", "true");
    EXPECT_EQ(all_logits(*tiny_engine(path_, base), some_ids(9)), all_logits(*tiny_engine(path_, eager), some_ids(9)))
        << features;
  }
}

TEST_F(EngineTest, LogitsDoNotDependOnBlockSizeChunkingThreadsOrTheCut) {
  const auto ids = some_ids(41);
  const auto expected = all_logits(*tiny_engine(path_), ids);
  const std::vector<Settings> variants = {
      {{"block-size", "1"}},
      {{"block-size", "32"}},
      {{"max-num-batched-tokens", "7"}},
      {{"threads", "1"}},
      {{"cc.splitting_ops", "[]"}},
      {{"max-num-batched-tokens", "1"}},
      {{"threads", "3"}},
      {{"skip-pass", "noop_elimination"}},
      {{"cc.compile_ranges_split_points", "[4,16]"}},
  };
  for (const Settings& settings : variants)
    EXPECT_EQ(all_logits(*tiny_engine(path_, settings), ids), expected)
        << settings[0].first << "=" << settings[0].second;
}

// The embedding is the head, too, and laid out for the head's kernels, which the meaning of an embedding cannot read.
TEST_F(EngineTest, AMeaningReadsNoPackedWeight) {
  const auto ids = some_ids(9);
  const auto expected = all_logits(*tiny_engine(path_), ids);
  for (const char* provider : {"native", "reference"})
    for (const char* is_eager : {"false", "true"})
      EXPECT_EQ(
          all_logits(*tiny_engine(path_, {{"ir-op-priority.embedding", provider}, {"enforce-eager", is_eager}}), ids),
          expected)
          << provider << ", " << is_eager;
}

// After an exception, its pages and requests are available to the next run.
TEST_F(EngineTest, GoesOnAfterAnExceptionOfItsCaller) {
  const auto engine = tiny_engine(path_);
  const auto ids = some_ids(23);
  const auto wanted = all_logits(*engine, ids);
  const auto refuse = [](auto&&...) { throw std::runtime_error("no more"); };
  for (int i = 0; i < 20; ++i) {  // more often than there are pages
    EXPECT_THROW(engine->score(ids, {0, 5}, refuse), std::runtime_error);
    EXPECT_THROW(engine->generate(ids, greedy(8), refuse), std::runtime_error);
  }
  EXPECT_TRUE(engine->is_idle());
  EXPECT_EQ(all_logits(*engine, ids), wanted);
}

TEST_F(EngineTest, ReferenceKernelsGiveTheSameTokens) {
  const Settings reference{{"ir-op-priority.rms_norm", "native"},
                           {"ir-op-priority.fused_add_rms_norm", "native"},
                           {"ir-op-priority.silu_and_mul", "native"},
                           {"ir-op-priority.rotary_embedding", "native"},
                           {"ir-op-priority.per_token_group_quant_int8", "native"},
                           {"ir-op-priority.embedding", "native"},
                           {"ir-op-priority.linear_int8", "reference"}};
  // Row-wise ops and linear_int8 have one exact result; attention and the cache are the same kernels here.
  EXPECT_EQ(all_logits(*tiny_engine(path_, reference), some_ids(11)), all_logits(*tiny_engine(path_), some_ids(11)));
}

TEST_F(EngineTest, SequencesThatShareStepsGetTheTokensTheyGetAlone) {
  for (const char* block : {"1", "16", "32"}) {
    const Settings settings{{"block-size", block}, {"max-num-batched-tokens", "9"}};
    std::vector<std::vector<int>> alone;
    for (int i = 0; i < 3; ++i) {
      auto engine = tiny_engine(path_, settings);
      alone.push_back(engine->generate(some_ids(5 + 13 * i, i), greedy(12)).tokens);
    }
    auto engine = tiny_engine(path_, settings);
    for (int i = 0; i < 3; ++i) engine->add(some_ids(5 + 13 * i, i), greedy(12));
    const auto together = run_all(*engine);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(together.at(i), alone[static_cast<std::size_t>(i)]) << block << " " << i;
  }
}

TEST_F(EngineTest, ASequenceThatLosesItsPagesStartsOverAndGivesTheSameTokens) {
  // Pages for one sequence, used by two sequences that grow to the whole context.
  const Settings settings{{"max-num-seqs", "1"}, {"block-size", "16"}};
  auto alone = tiny_engine(path_, settings);
  const auto first = alone->generate(some_ids(60, 1), greedy(60)).tokens;
  const auto second = alone->generate(some_ids(60, 2), greedy(60)).tokens;
  auto engine = tiny_engine(path_, {{"max-num-seqs", "2"}, {"block-size", "16"}, {"max-model-len", "128"}});
  engine->limit_pages(8 + 4);
  engine->add(some_ids(60, 1), greedy(60));
  engine->add(some_ids(60, 2), greedy(60));
  const auto together = run_all(*engine);
  EXPECT_EQ(together.at(0), first);
  EXPECT_EQ(together.at(1), second);
}

TEST_F(EngineTest, ACancelledRequestGivesItsPagesBackAndLeavesTheOthersAlone) {
  auto engine = tiny_engine(path_);
  engine->limit_pages(engine->max_model_len() / 16);
  const std::vector<int> alone = engine->generate(some_ids(9), greedy(12)).tokens;
  for (int i = 0; i < 3; ++i) {
    const int cancelled = engine->add(some_ids(100, 2), greedy(20)), kept = engine->add(some_ids(9), greedy(12));
    engine->step();
    engine->cancel(cancelled);
    engine->cancel(cancelled);
    std::vector<int> tokens;
    while (!engine->is_idle())
      for (const RequestEvent& event : engine->step()) {
        EXPECT_EQ(event.request, kept);
        tokens.push_back(event.token);
      }
    // Its first token is from the step above, unless its pages were not free then.
    ASSERT_GE(tokens.size(), 11U);
    EXPECT_TRUE(std::equal(tokens.rbegin(), tokens.rend(), alone.rbegin()));
  }
}

TEST_F(EngineTest, StopTextEndsTheAnswerAndIsNotPartOfIt) {
  auto engine = tiny_engine(path_);
  const auto whole = engine->generate(some_ids(8), greedy(40));
  // Any two neighbouring characters of the answer may serve as stop text.
  ASSERT_GE(whole.text.size(), 12u);
  std::size_t at = 6;
  while (at + 2 < whole.text.size() &&
         (static_cast<unsigned char>(whole.text[at]) >= 0x80 || static_cast<unsigned char>(whole.text[at + 1]) >= 0x80))
    ++at;
  SamplingParameters parameters = greedy(40);
  parameters.stop = {whole.text.substr(at, 2)};
  std::string streamed;
  const auto stopped = engine->generate(some_ids(8), parameters, [&](const std::string& text) { streamed += text; });
  EXPECT_EQ(stopped.finished, FinishReason::stop);
  EXPECT_EQ(stopped.text, whole.text.substr(0, whole.text.find(parameters.stop[0])));
  EXPECT_EQ(streamed, stopped.text);

  // The last event says which of several stop texts it was.
  parameters.stop.insert(parameters.stop.begin(), "\x01 no answer has this");
  engine->add(some_ids(8), parameters);
  RequestEvent last;
  while (!engine->is_idle())
    for (const RequestEvent& event : engine->step()) last = event;
  EXPECT_EQ(last.stop_text, 1);
  EXPECT_EQ(last.stop_id, -1);
}

TEST_F(EngineTest, EndsAtAStopTokenWhoseTextIsNotShown) {
  const auto engine = tiny_engine(path_);
  const Engine::Generation whole = engine->generate(some_ids(8), greedy(20));
  // A token that is not among those before it.
  std::size_t at = 5;
  while (std::find(whole.tokens.begin(), whole.tokens.begin() + static_cast<std::ptrdiff_t>(at), whole.tokens[at]) !=
         whole.tokens.begin() + static_cast<std::ptrdiff_t>(at))
    ASSERT_LT(++at, whole.tokens.size());
  SamplingParameters parameters = greedy(20);
  parameters.stop_ids = {whole.tokens[at]};
  engine->add(some_ids(8), parameters);
  std::vector<int> tokens;
  RequestEvent last;
  std::string text;
  while (!engine->is_idle())
    for (const RequestEvent& event : engine->step()) {
      tokens.push_back(event.token);
      text += event.text;
      last = event;
    }
  EXPECT_EQ(tokens, std::vector<int>(whole.tokens.begin(), whole.tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1));
  EXPECT_EQ(last.finished, FinishReason::stop);
  EXPECT_EQ(last.stop_id, whole.tokens[at]);
  EXPECT_EQ(text, engine->generate(some_ids(8), greedy(static_cast<std::int64_t>(at))).text);
  parameters.stop_ids = {100000};
  EXPECT_THROW(engine->add(some_ids(8), parameters), UserError);
}

TEST_F(EngineTest, RefusesPromptsThatCannotRun) {
  auto engine = tiny_engine(path_);
  EXPECT_THROW(engine->add({}, greedy(1)), UserError);
  EXPECT_THROW(engine->add({257}, greedy(1)), UserError);
  EXPECT_THROW(engine->add({-1}, greedy(1)), UserError);
  EXPECT_THROW(engine->add(std::vector<int>(128, 1), greedy(1)), UserError);
  EXPECT_THROW(tiny_engine(path_, {{"max-model-len", "4096"}}), UserError);
}

TEST_F(EngineTest, TheSameSeedDrawsTheSameTokens) {
  auto engine = tiny_engine(path_);
  SamplingParameters parameters = greedy(20);
  parameters.temperature = 1;
  parameters.seed = 5;
  const auto first = engine->generate(some_ids(8), parameters).tokens;
  EXPECT_EQ(engine->generate(some_ids(8), parameters).tokens, first);
  parameters.seed = 6;
  EXPECT_NE(engine->generate(some_ids(8), parameters).tokens, first);
}

TEST_F(EngineTest, EqualLayersAreOnePiece) {
  auto engine = tiny_engine(path_);
  const CompileRecord& forward = engine->runner().records().front();
  ASSERT_EQ(forward.graph, "forward");
  // The first piece, attention, the piece between layers, the last piece: for any number of layers.
  EXPECT_EQ(forward.split->pieces.size(), 4u);
  for (const PassRecord& pass : forward.passes) {
    if (pass.name == "clone_elimination") {
      EXPECT_TRUE(pass.result.kept_clones.empty());
    }
  }
}

}  // namespace weft::engine_test
