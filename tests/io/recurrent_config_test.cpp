// The recurrent layers of a model, by config.json. GGUF files of every family are read by tests/models.

#include "io/recurrent_config.h"

#include <cmath>

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

// The keys of a model with Mamba 2 of 4 heads of 32.
json mamba_keys() {
  return {{"mamba_n_heads", 4}, {"mamba_d_head", 32}, {"mamba_d_state", 16},    {"mamba_n_groups", 2},
          {"mamba_d_conv", 4},  {"mamba_d_ssm", 128}, {"mamba_expand", nullptr}};
}

ModelConfig mamba_config(const std::string& architecture, const json& changes = json::object()) {
  json keys = mamba_keys();
  keys.update(changes);
  return config_of(architecture, keys);
}

TEST(RecurrentConfig, HasMambaWhereBambaAndFalconHaveIt) {
  EXPECT_EQ(layers_of(mamba_config("bamba", {{"attn_layer_indices", {2, 5}}})), "rrarrarr");
  EXPECT_EQ(layers_of(mamba_config("bamba")), "rrrrrrrr") << "as in transformers";
  const ModelConfig falcon = mamba_config("falcon_h1");
  EXPECT_EQ(layers_of(falcon), "rrrrrrrr");
  EXPECT_TRUE(falcon.attends(0));
  EXPECT_FALSE(falcon.recurrent->has_norm);
  EXPECT_EQ(falcon.convolution_channels(), 128 + 2 * 2 * 16);
}

TEST(RecurrentConfig, TakesTheBoundsOfSteps) {
  const ModelConfig bounded = mamba_config("bamba", {{"time_step_limit", {0.01, 0.5}}});
  EXPECT_EQ(bounded.recurrent->least_step, 0.01);
  EXPECT_EQ(bounded.recurrent->largest_step, 0.5);
  const json infinite{{"__float__", "Infinity"}};
  const ModelConfig open = mamba_config("bamba", {{"time_step_limit", json::array({0.25, infinite})}});
  EXPECT_EQ(open.recurrent->least_step, 0.25);
  EXPECT_TRUE(std::isinf(open.recurrent->largest_step));
  EXPECT_TRUE(std::isinf(mamba_config("bamba").recurrent->largest_step));
  EXPECT_NE(message_of([&] {
              mamba_config("bamba", {{"time_step_limit", {0.25}}});
            }).find("time_step_limit must be the least step and the largest one, but is [0.25]"),
            std::string::npos);
}

TEST(RecurrentConfig, TakesTheFactorsOfFalcon) {
  const ModelConfig config = mamba_config(
      "falcon_h1",
      {{"ssm_multipliers", {1.5, 2.5, 3.5, 4.5, 5.5}}, {"ssm_in_multiplier", 0.5}, {"mlp_multipliers", {0.25, 0.75}}});
  const MambaFactors& factors = config.recurrent->factors;
  EXPECT_EQ(factors.input, 0.5);
  EXPECT_EQ(factors.gate, 1.5);
  EXPECT_EQ(factors.step, 5.5);
  EXPECT_EQ(factors.output, 1);
  EXPECT_EQ(config.gate_scale, 0.25);
  EXPECT_EQ(config.feed_forward_scale, 0.75);
  EXPECT_NE(message_of([&] {
              mamba_config("falcon_h1", {{"mlp_multipliers", {1}}});
            }).find("mlp_multipliers must be a list of 2 numbers, but is [1]"),
            std::string::npos);
}

TEST(RecurrentConfig, ReadsTheInfinityOfPython) {
  const Json json = parse_config_json(R"({"a": [0.0, Infinity], "b": "an \"Infinity\""})", "test");
  EXPECT_EQ(json["a"][1]["__float__"], "Infinity");
  EXPECT_EQ(json["b"], "an \"Infinity\"");
}

// A letter for each layer, as Nemotron H has them.
std::string halves_of(const ModelConfig& config) {
  std::string text;
  for (int layer = 0; layer < config.layer_count; ++layer)
    text += config.recurs(layer)      ? 'M'
            : config.attends(layer)   ? '*'
            : config.has_dense(layer) ? '-'
            : config.routes(layer)    ? 'E'
                                      : '?';
  return text;
}

TEST(RecurrentConfig, TakesTheHalvesOfNemotronH) {
  const json widths{{"mamba_num_heads", 4}, {"mamba_head_dim", 32}, {"ssm_state_size", 16}, {"n_groups", 2}};
  const auto config = [&](const json& changes) {
    json all = widths;
    all.update(changes);
    return config_of("nemotron_h", all);
  };
  EXPECT_EQ(halves_of(config({{"hybrid_override_pattern", "M-M*EM"}})), "M-M*EM");
  EXPECT_EQ(halves_of(config({{"layers_block_type", {"linear_attention", "moe", "full_attention", "mlp"}}})), "ME*-");
  EXPECT_EQ(config({{"hybrid_override_pattern", "M"}}).recurrent->least_step, 0.001);
  EXPECT_FALSE(config({{"hybrid_override_pattern", "M-*"}}).experts);
  const auto message = [&](const json& changes) { return message_of([&] { config(changes); }); };
  EXPECT_NE(message({{"hybrid_override_pattern", "Mx"}}).find("must be of the letters M, *, - and E, but is \"Mx\""),
            std::string::npos);
  EXPECT_NE(message({{"layers_block_type", {"conv"}}}).find("must be mamba, attention, mlp or moe, but has \"conv\""),
            std::string::npos);
  EXPECT_EQ(halves_of(config(json::object())), "ME*-ME*-") << "the default of transformers in turn";
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
