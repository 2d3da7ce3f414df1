// Answers with pages from the prefix cache have the bits of answers without.

#include <cstring>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::prefix_cache_test {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Bits = std::vector<std::string>;

SamplingParameters drawn(std::int64_t tokens) {
  return {.temperature = 0.8, .top_k = 30, .seed = 9, .max_tokens = tokens, .ignore_end = true};
}

std::map<int, std::vector<int>> run_all(Engine& engine) {
  std::map<int, std::vector<int>> tokens;
  while (!engine.is_idle())
    for (const RequestEvent& event : engine.step()) tokens[event.request].push_back(event.token);
  return tokens;
}

NewRequest request_of(const std::vector<int>& prompt, const SamplingParameters& parameters) {
  return {.prompt = std::make_shared<const std::vector<int>>(prompt), .parameters = parameters};
}

class EveryModelCachesPrefixes : public ::testing::Test {
 protected:
  // Calls `body` for each architecture in each of the types.
  void for_each(const std::vector<DType>& dtypes, const std::function<void(const std::string& path)>& body) const {
    for (const std::string& architecture : text_architectures(models_))
      for (const DType dtype : dtypes) {
        SCOPED_TRACE(architecture + " of " + std::string(dtype_text(dtype)));
        const SampleCheckpoint sample(models_.find(architecture, "test"), {{"model_type", architecture}}, 7);
        body(sample.write_gguf(folder_, architecture + ".gguf", dtype));
      }
  }
  Engine engine(const std::string& path, const Settings& settings = {}) const {
    Options options;
    options.threads = 1;
    options.block_size = 4;
    options.max_num_batched_tokens = 24;
    options.max_num_seqs = 6;
    options.disable_compile_cache = true;
    for (const auto& [name, value] : settings) set_option(options, name, value, "test");
    return {make_context(options), Checkpoint::open(path), models_};
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
};

TEST_F(EveryModelCachesPrefixes, AndGivesTheTokensThatItGivesWithout) {
  const auto prompt = some_ids(21);
  for_each({DType::bf16}, [&](const std::string& path) {
    Engine plain = engine(path, {{"enable-prefix-caching", "false"}}), caching = engine(path);
    const std::vector<int> wanted = plain.generate(prompt, drawn(10)).tokens;
    EXPECT_EQ(plain.generate(prompt, drawn(10)).cached_tokens, 0);
    EXPECT_EQ(caching.generate(prompt, drawn(10)).tokens, wanted);
    const Engine::Generation cached = caching.generate(prompt, drawn(10));
    EXPECT_EQ(cached.cached_tokens, 20);
    EXPECT_EQ(cached.tokens, wanted);
    // The answer is found, too, as part of a longer prompt.
    std::vector<int> longer = prompt;
    longer.insert(longer.end(), wanted.begin(), wanted.end());
    longer.push_back(5);
    const Engine::Generation continued = caching.generate(longer, drawn(6));
    EXPECT_EQ(continued.cached_tokens, 28);
    EXPECT_EQ(continued.tokens, plain.generate(longer, drawn(6)).tokens);
  });
}

// In eager mode, which has the bits of compiled models, the inputs of every linear layer can be seen: here those of the
// last row of each step, from which logits are computed.
TEST_F(EveryModelCachesPrefixes, AndComputesTheSameBits) {
  const auto prompt = some_ids(21);
  for_each({DType::q4_1, DType::bf16}, [&](const std::string& path) {
    Engine one = engine(path, {{"enforce-eager", "true"}});
    const auto bits = [&] {
      Bits rows;
      one.runner().set_linear_observer([&](const std::vector<std::string>& keys, const Tensor& x) {
        if (keys[0].find("ffn_down_exps") != std::string::npos) return;  // its rows are in the order of experts
        const std::int64_t count = x.meta.shape[0].number(), bytes = x.meta.bytes().number() / count;
        std::string row(static_cast<std::size_t>(bytes), '\0');
        std::memcpy(row.data(), x.data() + (count - 1) * bytes, row.size());
        rows.push_back(keys[0] + ":" + row);
      });
      EXPECT_EQ(one.generate(prompt, drawn(4)).tokens.size(), 4U);
      return rows;
    };
    const Bits computed = bits(), cached = bits();
    EXPECT_EQ(one.statistics().prefix_cache_hits, 20);
    EXPECT_GT(computed.size(), 4U);
    ASSERT_EQ(computed.size(), cached.size());
    for (std::size_t i = 0; i < computed.size(); ++i)
      ASSERT_TRUE(computed[i] == cached[i]) << computed[i].substr(0, computed[i].find(':')) << ", layer input " << i;
  });
}

class PrefixCache : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = write_tiny_model(folder_);
};

// Requests in waves that share prefixes, with pages for few of them, so that pages are taken for other tokens and
// sequences lose theirs.
TEST_F(PrefixCache, ChangesNoAnswerWherePagesAreScarce) {
  const auto prompt = [](int i) {
    std::vector<int> ids = some_ids(10 + 7 * (i % 4), 1);
    const std::vector<int> own = some_ids(3 + i % 5, i);
    ids.insert(ids.end(), own.begin(), own.end());
    return ids;
  };
  const auto alone = tiny_engine(path_, {{"enable-prefix-caching", "false"}, {"block-size", "4"}});
  const auto engine =
      tiny_engine(path_, {{"block-size", "4"}, {"max-num-seqs", "6"}, {"max-num-batched-tokens", "32"}});
  engine->limit_pages(32);
  for (int wave = 0; wave < 3; ++wave) {
    std::map<int, int> numbers;
    for (int i = 0; i < 12; ++i) numbers[engine->add(prompt(i), drawn(30))] = i;
    for (const auto& [request, tokens] : run_all(*engine))
      EXPECT_EQ(tokens, alone->generate(prompt(numbers.at(request)), drawn(30)).tokens) << wave << " " << request;
  }
  const EngineStatistics counts = engine->statistics();
  EXPECT_GT(counts.preemptions, 0);
  EXPECT_GT(counts.prefix_cache_hits, 100);
  EXPECT_EQ(counts.pages_used, 0);
  EXPECT_EQ(counts.pages, 32);
  EXPECT_TRUE(engine->reset_prefix_cache());
  EXPECT_EQ(engine->generate(prompt(0), drawn(1)).cached_tokens, 0);
}

TEST_F(PrefixCache, SaltsAndRequestsThatWantEveryRowFindNothing) {
  const auto engine = tiny_engine(path_);
  const auto cached = [&](NewRequest request) {
    engine->add(std::move(request));
    std::int64_t tokens = 0;
    while (!engine->is_idle())
      for (const RequestEvent& event : engine->step()) tokens = event.cached_tokens;
    return tokens;
  };
  NewRequest request = request_of(some_ids(40), drawn(2));
  EXPECT_EQ(cached(request), 0);
  EXPECT_EQ(cached(request), 32);
  NewRequest salted = request, every_row = request;
  salted.cache_salt = "salt";
  every_row.parameters.prompt_logprobs = 0;
  EXPECT_EQ(cached(salted), 0);
  EXPECT_EQ(cached(salted), 32);
  EXPECT_EQ(cached(every_row), 0);
}

TEST_F(PrefixCache, ScoresAreComputedAndLeaveThePagesOfOthers) {
  const auto engine = tiny_engine(path_);
  const auto wanted = all_logits(*engine, some_ids(40));
  engine->generate(some_ids(40), drawn(2));
  EXPECT_EQ(all_logits(*engine, some_ids(40)), wanted);
  EXPECT_EQ(engine->generate(some_ids(40), drawn(2)).cached_tokens, 32);
}

// Its keys exceed f16, which is an error of the request; a second one must not be computed from its pages in silence.
TEST_F(PrefixCache, KeepsNoPageOfARequestThatFailed) {
  const ModelRegistry models = make_model_registry();
  SampleCheckpoint sample(models.find("llama", "test"), {}, 7);
  sample.multiply("model.layers.0.self_attn.k_proj.weight", 1e6F);
  const std::string path = sample.write_folder(folder_, "large", DType::f32);
  const auto engine = tiny_engine(path, {{"kv-cache-dtype", "f16"}, {"block-size", "4"}});
  for (int i = 0; i < 2; ++i) {
    engine->add(request_of(some_ids(21), drawn(2)));
    while (!engine->is_idle())
      for (const RequestEvent& event : engine->step()) {
        EXPECT_EQ(event.finished, FinishReason::failed);
        EXPECT_NE(event.error.find("[kv cache]"), std::string::npos) << event.error;
      }
  }
  EXPECT_EQ(engine->statistics().prefix_cache_hits, 0);
}

TEST_F(PrefixCache, RefusesWhatAllPagesCannotHold) {
  const auto engine = tiny_engine(path_);
  engine->limit_pages(2);
  EXPECT_THROW(engine->add(some_ids(30), drawn(4)), UserError);
  engine->add(some_ids(30), drawn(3));
  EXPECT_EQ(run_all(*engine).begin()->second.size(), 3U);
}

TEST_F(PrefixCache, ByPriorityTheFirstAnswerIsThatOfTheSmallestNumber) {
  const auto engine = tiny_engine(path_, {{"max-num-seqs", "1"}, {"scheduling-policy", "priority"}});
  std::vector<int> ended;
  for (const std::int64_t priority : {3, 1, 2}) {
    NewRequest request = request_of(some_ids(5), drawn(2));
    request.priority = priority;
    engine->add(request);
  }
  while (!engine->is_idle())
    for (const RequestEvent& event : engine->step())
      if (event.finished != FinishReason::none) ended.push_back(event.request);
  EXPECT_EQ(ended, (std::vector<int>{1, 2, 0}));
}

}  // namespace weft::prefix_cache_test
