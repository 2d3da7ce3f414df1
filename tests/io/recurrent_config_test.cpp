// The recurrent layers of a model, by config.json. GGUF files of every family are read by tests/models.

#include "io/recurrent_config.h"

#include <gtest/gtest.h>

#include "tests/io/tiny_config.h"

namespace weft::recurrent_config_test {

using namespace tiny_config;

ModelConfig config_of(const std::string& architecture, const json& changes = json::object()) {
  json config = tiny_json();
  config["model_type"] = architecture;
  config["num_hidden_layers"] = 8;
  config.update(changes);
  return read(config);
}

// A letter for each layer: r for a recurrent one, a for attention.
std::string layers_of(const ModelConfig& config) {
  std::string text;
  for (int layer = 0; layer < config.layer_count; ++layer) text += config.recurs(layer) ? 'r' : 'a';
  return text;
}

TEST(RecurrentConfig, TakesTheLayersFromTheFileOrFromTheFamilysPeriod) {
  EXPECT_EQ(layers_of(config_of("qwen3_5_text")), "rrrarrra");
  EXPECT_EQ(layers_of(config_of("qwen3_5_text", {{"full_attention_interval", 3}})), "rrarrarr");
  EXPECT_EQ(layers_of(config_of("lfm2", {{"full_attn_idxs", {1, 6}}})), "rarrrrar");
  EXPECT_EQ(layers_of(config_of("lfm2")), "aaaaaaaa") << "as in transformers";
  json words(8, "conv");
  words[3] = "full_attention";
  EXPECT_EQ(layers_of(config_of("lfm2", {{"layer_types", words}, {"full_attn_idxs", {0}}})), "rrrarrrr");
  EXPECT_EQ(layers_of(config_of("llama")), "aaaaaaaa");
  EXPECT_FALSE(config_of("lfm2").recurrent);
}

TEST(RecurrentConfig, TakesTheWidthsOfStates) {
  const json changes{{"linear_num_key_heads", 2},
                     {"linear_num_value_heads", 6},
                     {"linear_key_head_dim", 8},
                     {"linear_value_head_dim", 5},
                     {"linear_conv_kernel_dim", 3}};
  const ModelConfig config = config_of("qwen3_next", changes);
  EXPECT_EQ(config.recurrent->convolution_width, 3);
  EXPECT_EQ(config.recurrent->keys_width(), 16);
  EXPECT_EQ(config.recurrent->values_width(), 30);
  EXPECT_EQ(config.convolution_channels(), 62);
  EXPECT_EQ(config_of("lfm2", {{"full_attn_idxs", {1}}}).convolution_channels(), config.hidden_size);
}

TEST(RecurrentConfig, AdjustsTheWidthOfTheFeedForwardAsLfm2Does) {
  const auto width = [](json changes) {
    changes["intermediate_size"] = 100;
    return config_of("lfm2", changes).intermediate_size;
  };
  EXPECT_EQ(width({{"block_multiple_of", 8}}), 72) << "of 66";
  EXPECT_EQ(width({{"block_multiple_of", 8}, {"block_ffn_dim_multiplier", 1.5}}), 104) << "of 99";
  EXPECT_EQ(width({{"block_auto_adjust_ff_dim", false}}), 100);
  EXPECT_EQ(config_of("lfm2", {{"block_ff_dim", 30}, {"block_multiple_of", 4}}).intermediate_size, 20);
}

TEST(RecurrentConfig, NamesTheKeyThatIsWrong) {
  const auto message = [](const char* architecture, const json& changes) {
    return message_of([&] { config_of(architecture, changes); });
  };
  EXPECT_NE(message("qwen3_5_text", {{"linear_num_key_heads", 5}}).find("linear_num_key_heads must divide"),
            std::string::npos);
  EXPECT_NE(message("lfm2", {{"full_attn_idxs", {1}}, {"conv_L_cache", 1}}).find("conv_L_cache must be 2 to"),
            std::string::npos);
  EXPECT_NE(message("qwen3_5_text", {{"layer_types", json(8, "mamba")}}).find("layer_types must be"),
            std::string::npos);
  EXPECT_NE(message("llama", {{"layer_types", json(8, "linear_attention")}}).find("layers of Mamba"),
            std::string::npos);
}

}  // namespace weft::recurrent_config_test
