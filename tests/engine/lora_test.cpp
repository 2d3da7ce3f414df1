// LoRA adapters: a model with an adapter computes what one with merged weights does, and rows of several adapters share
// a step.

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "tests/engine/step_logits.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_lora.h"
#include "tests/thrown_message.h"

namespace weft::lora_test {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Logits = std::vector<std::vector<float>>;
using Rows = SequenceOfStep;

// Sums of products in another order differ by so much.
constexpr double kRounding = 1e-4;

class Lora : public ::testing::Test {
 protected:
  const ModelDefinition& model(const std::string& architecture) const { return models_.find(architecture, "test"); }
  SampleCheckpoint sample(const std::string& architecture, std::uint64_t seed = 7) const {
    return SampleCheckpoint(model(architecture), {{"model_type", architecture}}, seed);
  }
  SampleLora lora(const SampleCheckpoint& base, SampleLora::Settings settings,
                  const std::set<std::string>& names = names_of_linear_layers(),
                  const std::string& architecture = "llama") const {
    return SampleLora(model(architecture), base, names, settings);
  }
  std::unique_ptr<Engine> engine(const std::string& path, Settings settings = {}) const {
    settings.insert(settings.end(), {{"disable-compile-cache", "true"}, {"threads", "2"}});
    return tiny_engine(path, settings);
  }
  Logits logits(const std::string& path, const Settings& settings = {}, std::int64_t adapter = 0) const {
    return logits_of_step(engine(path, settings)->runner(), {{.count = 9, .adapter = adapter}});
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
};

// tests/engine/lora_models_slow_test.cpp has all models.
TEST_F(Lora, EqualsMergedWeights) {
  for (const std::string architecture : {"llama", "gpt2", "phi3", "qwen2"}) {
    SCOPED_TRACE(architecture);
    const SampleCheckpoint base = sample(architecture), merged = sample(architecture);
    const SampleLora adapter = lora(base, {}, names_of_linear_layers(), architecture);
    adapter.merge_into(merged);
    const std::string path = base.write_folder(folder_, architecture, DType::f32);
    const std::string lora_path = adapter.write_folder(folder_, architecture + "-lora");
    const Logits wanted = logits(merged.write_folder(folder_, architecture + "-merged", DType::f32));
    EXPECT_GT(logit_difference(logits(path), wanted), 0.01) << "the adapter changes something";
    EXPECT_LT(logit_difference(logits(path, {{"lora", lora_path}}), wanted), kRounding);
    EXPECT_LT(logit_difference(logits(path, {{"lora-modules", "a=" + lora_path}}, 1), wanted), kRounding);
  }
}

TEST_F(Lora, OfBothFormatsFitsModelsOfBothFormats) {
  const SampleCheckpoint base = sample("llama"), merged = sample("llama");
  const SampleLora adapter = lora(base, {});
  adapter.merge_into(merged);
  const Logits wanted = logits(merged.write_folder(folder_, "merged", DType::f32));
  for (const std::string& path :
       {base.write_folder(folder_, "model", DType::f32), base.write_gguf(folder_, "model.gguf", DType::f32)})
    for (const std::string& of_lora : {adapter.write_folder(folder_, "lora"), adapter.write_gguf(folder_, "lora.gguf")})
      EXPECT_LT(logit_difference(logits(path, {{"lora", of_lora}, {"kv-cache-dtype", "f32"}}), wanted), kRounding)
          << path << " with " << of_lora;
}

// PEFT then adapts the product of the head, and not the look-up of tokens.
TEST_F(Lora, OfATiedHeadLeavesTheEmbeddingAsItIs) {
  const SampleCheckpoint tied(model("llama"), {{"tie_word_embeddings", true}}, 7),
      merged(model("llama"), {{"tie_word_embeddings", false}}, 8);
  const SampleLora adapter = lora(merged, {}, {"output", "ffn_down"});
  for (const auto& [name, weight] : merged.weights())
    for (const auto& [other, values] : tied.weights())
      if (other == (name == "lm_head.weight" ? "model.embed_tokens.weight" : name))
        std::copy_n(values.as<float>(), element_count(values.meta.shape).number(), weight.as<float>());
  adapter.merge_into(merged);
  const Logits wanted = logits(merged.write_folder(folder_, "merged", DType::f32));
  const std::string path = tied.write_folder(folder_, "tied", DType::f32),
                    of_lora = adapter.write_folder(folder_, "lora");
  EXPECT_GT(logit_difference(logits(path), wanted), 0.01);
  EXPECT_LT(logit_difference(logits(path, {{"lora", of_lora}}), wanted), kRounding);
  EXPECT_LT(logit_difference(logits(path, {{"lora-modules", "a=" + of_lora}}, 1), wanted), kRounding);
}

TEST_F(Lora, OfAQuantizedModelIsComputedInNumbers) {
  SampleCheckpoint base = sample("llama"), merged = sample("llama");
  const SampleLora adapter = lora(base, {});
  base.round_matrices_to(DType::q8_0);
  merged.round_matrices_to(DType::q8_0);
  adapter.merge_into(merged);
  const Logits wanted = logits(merged.write_folder(folder_, "merged", DType::f32));
  const std::string path = base.write_gguf(folder_, "model.gguf", DType::q8_0),
                    of_lora = adapter.write_folder(folder_, "lora", DType::bf16);
  EXPECT_LT(logit_difference(logits(path, {{"lora", of_lora}, {"activation-precision", "exact"}}), wanted),
            4 * kRounding);
  // Activations of the model's own weights are 8-bit codes.
  const double without = logit_difference(logits(path), wanted);
  EXPECT_LT(logit_difference(logits(path, {{"lora", of_lora}}), wanted), 0.3 * without) << without;
}

// It multiplies no stacks, so the adapters are joined.
TEST_F(Lora, OfAGpuEqualsThatOfTheHost) {
  const SampleCheckpoint base = sample("llama");
  const std::string path = base.write_folder(folder_, "model", DType::f32);
  const Settings settings{
      {"lora-modules", "a=" + lora(base, {.rank = 3, .seed = 1}).write_folder(folder_, "a")},
      {"lora-modules",
       "b=" + lora(base, {.rank = 9, .seed = 2}, {"attn_k", "ffn_down", "output"}).write_folder(folder_, "b")}};
  Settings on_gpu = settings;
  on_gpu.emplace_back("device", "fake-cuda");
  const std::vector<Rows> sequences{{7, 0, 1}, {5, 1, 2}, {1, 2, 3}};
  EXPECT_LT(logit_difference(logits_of_step(engine(path, on_gpu)->runner(), sequences),
                             logits_of_step(engine(path, settings)->runner(), sequences)),
            kRounding);
}

TEST_F(Lora, SumsTheAdaptersOfAllRequests) {
  const SampleCheckpoint base = sample("llama"), merged = sample("llama");
  const SampleLora first = lora(base, {.rank = 3, .seed = 1}, {"attn_q", "ffn_down"}),
                   second = lora(base, {.rank = 6, .alpha = 3, .seed = 2}, {"attn_q", "attn_v", "ffn_up"});
  first.merge_into(merged);
  second.merge_into(merged, 0.5);
  const std::string path = base.write_folder(folder_, "model", DType::f32);
  const Settings both{{"lora", first.write_folder(folder_, "first")},
                      {"lora-scaled", second.write_folder(folder_, "second") + ":0.5"}};
  const Logits wanted = logits(merged.write_folder(folder_, "merged", DType::f32));
  EXPECT_LT(logit_difference(logits(path, both), wanted), kRounding);
}

class LoraOfRows : public Lora {
 protected:
  LoraOfRows()
      : base_(sample("llama")),
        path_(base_.write_folder(folder_, "model", DType::bf16)),
        settings_{
            {"lora-modules", "a=" + lora(base_, {.rank = 3, .seed = 1}).write_folder(folder_, "a")},
            {"lora-modules", "b=" + lora(base_, {.rank = 9, .seed = 2}, {"attn_k", "attn_v", "ffn_down", "output"})
                                        .write_folder(folder_, "b")}} {}

  const SampleCheckpoint base_;
  const std::string path_;
  const Settings settings_;
};

TEST_F(LoraOfRows, DoesNotDependOnTheOtherRowsOfAStep) {
  const auto runner = engine(path_, settings_);
  const std::vector<Rows> sequences{{7, 0, 1}, {5, 1, 2}, {1, 2, 3}, {6, 1, 1}, {4, 0, 5}, {3, 2, 2}};
  Logits alone;
  for (const Rows& one : sequences)
    for (std::vector<float>& row : logits_of_step(runner->runner(), {one})) alone.push_back(std::move(row));
  EXPECT_EQ(logits_of_step(runner->runner(), sequences), alone);
}

TEST_F(LoraOfRows, LeavesRowsWithoutAnAdapterAsTheyAre) {
  const std::vector<Rows> sequences{{7, 0, 1}, {4, 0, 5}};
  EXPECT_EQ(logits_of_step(engine(path_, settings_)->runner(), sequences),
            logits_of_step(engine(path_)->runner(), sequences));
}

TEST_F(LoraOfRows, HasTheBitsOfEagerMode) {
  const std::vector<Rows> sequences{{7, 0, 1}, {5, 1, 2}, {1, 2, 3}};
  Settings eager = settings_;
  eager.emplace_back("enforce-eager", "true");
  EXPECT_EQ(logits_of_step(engine(path_, settings_)->runner(), sequences),
            logits_of_step(engine(path_, eager)->runner(), sequences));
}

TEST_F(LoraOfRows, SharesNoPrefixWithOthers) {
  const auto opened = engine(path_, settings_);
  const auto prompt = std::make_shared<const std::vector<int>>(some_ids(40));
  const auto named = opened->runner().adapters().take_named();
  const auto answer = [&](std::size_t adapter) {
    opened->add({.prompt = prompt,
                 .parameters = {.max_tokens = 6, .ignore_end = true},
                 .adapter = adapter == 0 ? nullptr : named.at(adapter - 1)});
    std::pair<std::vector<int>, std::int64_t> tokens;
    while (!opened->is_idle())
      for (const RequestEvent& event : opened->step()) {
        tokens.first.push_back(event.token);
        tokens.second = event.cached_tokens;
      }
    return tokens;
  };
  const auto plain = answer(0), first = answer(1), second = answer(2);
  for (const auto& fresh : {plain, first, second}) EXPECT_EQ(fresh.second, 0);
  EXPECT_NE(first.first, second.first);
  const auto again = answer(1);
  EXPECT_EQ(again.first, first.first);
  EXPECT_GT(again.second, 0);
}

TEST_F(Lora, RefusesWhatDoesNotFitTheModel) {
  const SampleCheckpoint base = sample("llama");
  const std::string path = base.write_folder(folder_, "model", DType::f32);
  const auto message = [&](const std::string& lora_path) {
    return message_of([&] { engine(path, {{"lora", lora_path}}); });
  };
  const SampleCheckpoint deeper(model("llama"), {{"num_hidden_layers", 3}}),
      wider(model("llama"), {{"hidden_size", 128}});
  EXPECT_EQ(missing_part(message(lora(deeper, {}).write_folder(folder_, "deeper")),
                         {"adapter_model.safetensors]", "model.layers.2.", "the model has no such weight"}),
            "");
  EXPECT_EQ(missing_part(message(lora(wider, {}, {"ffn_up"}).write_folder(folder_, "wider")),
                         {"mlp.up_proj.lora_A.weight", "[96, 64]", "A of [4, 64] and B of [96, 4]", "f32[4, 128]"}),
            "");
  EXPECT_EQ(missing_part(message(lora(base, {}, {"token_embd"}).write_folder(folder_, "embedding")),
                         {"embed_tokens", "not implemented"}),
            "");
  const SampleCheckpoint mixture = sample("qwen2_moe");
  const SampleLora router = lora(mixture, {}, {"ffn_gate_inp"}, "qwen2_moe");
  ASSERT_FALSE(router.empty());
  EXPECT_EQ(missing_part(message_of([&] {
                           engine(mixture.write_folder(folder_, "mixture", DType::f32),
                                  {{"lora", router.write_folder(folder_, "router")}});
                         }),
                         {"mlp.gate.", "no plain linear layer", "routers"}),
            "");
  const SampleCheckpoint other = sample("gpt2");
  EXPECT_EQ(missing_part(message(lora(other, {}, names_of_linear_layers(), "gpt2").write_gguf(folder_, "other.gguf")),
                         {"general.architecture", "llama", "gpt2"}),
            "");
}

}  // namespace weft::lora_test
