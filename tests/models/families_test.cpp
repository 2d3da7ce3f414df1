// What the files of some families state in their own way, and what their models compute that no reference shows.

#include <cmath>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::families_test {

using nlohmann::json;

class Families : public ::testing::Test {
 protected:
  ModelConfig config_of(const std::string& architecture, const json& changes = json::object()) const {
    return SampleCheckpoint(models_.find(architecture, "test"), changes).config();
  }
  std::string refusal(const std::string& architecture, const json& changes) const {
    return message_of([&] { models_.find(architecture, "test").check(config_of(architecture, changes)); });
  }
  // The logits of the last of some tokens.
  std::vector<float> logits_of(const std::string& path) const {
    Options options;
    for (const auto& [name, value] : {std::pair{"activation-precision", "exact"}, {"dtype", "f32"}})
      set_option(options, name, value, "test");
    Engine engine(make_context(options), Checkpoint::open(path), make_model_registry());
    std::vector<float> logits;
    engine.score({1, 5, 9}, {2}, [&](int, std::span<const float> row) { logits.assign(row.begin(), row.end()); });
    return logits;
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
};

// How far the logits are from those of a head whose rows are five times as long.
TEST_F(Families, RowsOfTheHeadOfBaichuan2AreDividedByTheirLengths) {
  for (const std::int64_t tokens : {64000, 125696}) {
    SampleCheckpoint sample(models_.find("baichuan", "test"), {{"vocab_size", tokens},
                                                               {"hidden_size", 16},
                                                               {"intermediate_size", 16},
                                                               {"num_key_value_heads", 4},
                                                               {"num_hidden_layers", 1}});
    const std::vector<float> short_rows = logits_of(sample.write_folder(folder_, std::to_string(tokens), DType::f32));
    sample.multiply("lm_head.weight", 5);
    const std::vector<float> long_rows = logits_of(sample.write_folder(folder_, "long", DType::f32));
    const std::vector<float> of_gguf = logits_of(sample.write_gguf(folder_, "long.gguf", DType::f32));
    ASSERT_EQ(short_rows.size(), static_cast<std::size_t>(tokens));
    double largest = 0;
    for (std::size_t i = 0; i < short_rows.size(); ++i) {
      const float wanted = tokens == 64000 ? 5 * short_rows[i] : short_rows[i];
      EXPECT_NEAR(long_rows[i], wanted, 1e-4F) << i;
      EXPECT_NEAR(of_gguf[i], wanted, 1e-4F) << i;
      largest = std::max(largest, std::abs(static_cast<double>(short_rows[i])));
    }
    EXPECT_GT(largest, 0.01);
    std::filesystem::remove_all(folder_ / "long");
  }
}

TEST_F(Families, BaichuanHasAlibiInItsLargerModels) {
  EXPECT_FALSE(config_of("baichuan").has_score_bias());
  const ModelConfig larger = config_of("baichuan", {{"num_hidden_layers", 40}});
  EXPECT_EQ(larger.alibi_bias_max, 8);
  EXPECT_EQ(larger.rope_of(39), nullptr);
}

TEST_F(Families, MiniCpmStatesItsFactorsByTheDepthAndAWidth) {
  const ModelConfig config = config_of("minicpm");
  EXPECT_DOUBLE_EQ(config.embedding_scale, 12);
  EXPECT_DOUBLE_EQ(config.residual_scale, 1.4 / std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(config.logit_divisor, 4);
  EXPECT_NE(refusal("minicpm", {{"dim_model_base", 0}}).find("dim_model_base must be above 0"), std::string::npos);
}

// Files of the first converters have none of the factors, which all models of that time had.
TEST_F(Families, EarlyGgufFilesOfMiniCpmHaveTheFactorsOfTheFirstModels) {
  const ModelDefinition& model = models_.find("minicpm", "test");
  ModelDefinition silent = model;
  for (NumberKey& number : silent.facts.numbers) number.gguf = "";
  const std::string path = SampleCheckpoint(silent).write_gguf(folder_, "early.gguf", DType::f32);
  const ModelConfig config = Checkpoint::open(path).config(model.facts);
  EXPECT_DOUBLE_EQ(config.embedding_scale, 12);
  EXPECT_DOUBLE_EQ(config.residual_scale, 1.4 / std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(config.logit_divisor, 64.0 / 256);
}

TEST_F(Families, WidthsOfValuesOfLatentsAreThoseOfUsualHeadsIfTheFileDoesNotStateThem) {
  EXPECT_EQ(config_of("minicpm3", {{"v_head_dim", nullptr}, {"num_attention_heads", 8}}).latents->value_dim, 8);
  EXPECT_EQ(config_of("minicpm3", {{"v_head_dim", 24}}).latents->value_dim, 24);
}

TEST_F(Families, ChatGlmStatesTheThetaOfPositionsAsAFactor) {
  EXPECT_EQ(config_of("chatglm", {{"rope_ratio", 500}}).rope.theta, 5e6);
  EXPECT_NE(refusal("chatglm", {{"multi_query_attention", false}}).find("multi_query_attention must be true"),
            std::string::npos);
}

TEST_F(Families, ApertusHasTheParametersOfItsActivationInGgufFilesAsMetadata) {
  ModelDefinition silent = models_.find("apertus", "test");
  silent.facts.layer_numbers.pop_back();
  const std::string path = SampleCheckpoint(silent).write_gguf(folder_, "silent.gguf", DType::f32);
  const ModelDefinition& model = models_.find("apertus", "test");
  const std::string refused = message_of([&] { model.check(Checkpoint::open(path).config(model.facts)); });
  EXPECT_NE(refused.find("wanted the metadata xielu.alpha_p and xielu.alpha_n"), std::string::npos) << refused;
  EXPECT_NE(refusal("apertus", {{"hidden_act", "silu"}}).find("hidden_act must be xielu"), std::string::npos);
}

TEST_F(Families, AfmoeScalesEmbeddingsIfTheFileSaysSo) {
  EXPECT_DOUBLE_EQ(config_of("afmoe").embedding_scale, 8);
  EXPECT_DOUBLE_EQ(config_of("afmoe", {{"mup_enabled", false}}).embedding_scale, 1);
  EXPECT_NE(message_of([&] { config_of("afmoe", {{"score_func", "softmax"}}); }).find("score_func"), std::string::npos);
}

TEST_F(Families, MambaStatesTheWidthOfStepsOrLeavesItToTheWidthOfTheModel) {
  EXPECT_EQ(config_of("mamba", {{"time_step_rank", "auto"}}).recurrent->step_rank, 4);
  EXPECT_EQ(config_of("mamba", {{"time_step_rank", 5}}).recurrent->step_rank, 5);
  EXPECT_EQ(config_of("mamba", {{"intermediate_size", nullptr}, {"expand", 3}}).convolution_channels(), 192);
  EXPECT_FALSE(config_of("mamba").recurrent->normalizes_parts);
  EXPECT_EQ(config_of("falcon_mamba", {{"mixer_rms_eps", 1e-3}}).recurrent->parts_epsilon, 1e-3);
}

TEST_F(Families, JambaPlacesAttentionAndExpertsByPeriods) {
  const ModelConfig config =
      config_of("jamba", {{"num_hidden_layers", 8}, {"expert_layer_period", 3}, {"expert_layer_offset", 0}});
  for (int layer = 0; layer < 8; ++layer) {
    EXPECT_EQ(config.attends(layer), layer % 4 == 2) << layer;
    EXPECT_EQ(config.routes(layer), layer % 3 == 0) << layer;
  }
  EXPECT_FALSE(config_of("jamba", {{"num_experts", 1}}).experts);
}

TEST_F(Families, QwenCountsTheRowsOfGateAndUpTogether) {
  const ModelConfig config = config_of("qwen", {{"intermediate_size", 128}, {"max_position_embeddings", 1000}});
  EXPECT_EQ(config.intermediate_size, 64);
  EXPECT_EQ(config.context_length, 128) << "seq_length";
  const std::string refused = message_of([&] { config_of("qwen", {{"intermediate_size", 95}}); });
  EXPECT_NE(refused.find("intermediate_size must be even"), std::string::npos) << refused;
  EXPECT_NE(message_of([&] {
              config_of("qwen", {{"no_bias", false}});
            }).find("no_bias must be true"),
            std::string::npos);
}

TEST_F(Families, OfBailingMoeOneExpertHasTheWeightOfItsScore) {
  for (const char* architecture : {"bailing_moe", "bailing_moe_v2"}) {
    EXPECT_TRUE(config_of(architecture).experts->normalizes);
    EXPECT_FALSE(config_of(architecture, {{"num_experts_per_tok", 1}}).experts->normalizes);
  }
  EXPECT_NE(message_of([&] {
              config_of("bailing_moe", {{"norm_softmax", true}});
            }).find("norm_softmax"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              config_of("bailing_moe_v2", {{"use_qk_norm", false}});
            }).find("use_qk_norm must be true"),
            std::string::npos);
}

// How far the logits are from those of a head whose columns are five times as long.
TEST_F(Families, ColumnsOfTheHeadOfBailingMoeAreDividedByTheirLengths) {
  for (const bool is_normalized : {true, false}) {
    SampleCheckpoint sample(models_.find("bailing_moe", "test"), {{"norm_head", is_normalized}});
    const std::vector<float> before = logits_of(sample.write_folder(folder_, "short", DType::f32));
    sample.multiply("lm_head.weight", 5);
    const std::vector<float> after = logits_of(sample.write_folder(folder_, "long", DType::f32));
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_NEAR(after[i], (is_normalized ? 1 : 5) * before[i], 1e-4F) << i;
    for (const char* name : {"short", "long"}) std::filesystem::remove_all(folder_ / name);
  }
}

TEST_F(Families, OfDeepSeek32TheContextIsWhatTheIndexChooses) {
  const json version{
      {"model_type", "deepseek_v32"}, {"index_topk", 64}, {"layer_types", {"indexed_attention", "indexed_attention"}}};
  const ModelConfig config = config_of("deepseek_v3", version);
  EXPECT_EQ(config.context_length, 64);
  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_NE(config.warnings[0].find("the context is 64 tokens and not 128"), std::string::npos) << config.warnings[0];
  EXPECT_EQ(config_of("deepseek_v3").context_length, 128);
}

TEST_F(Families, BitNetOfTwoWordsInGgufFilesHasTwoActivations) {
  ModelDefinition first = models_.find("bitnet", "test");
  for (const auto& [word, activation] : {std::pair{"bitnet", "silu"}, std::pair{"bitnet-b1.58", "relu2"}}) {
    first.gguf_architecture = word;
    const std::string path = SampleCheckpoint(first).write_gguf(folder_, "m.gguf", DType::f32);
    const Checkpoint checkpoint = Checkpoint::open(path);
    EXPECT_EQ(checkpoint.config(models_.find(checkpoint).facts).hidden_act, activation);
  }
}

}  // namespace weft::families_test
