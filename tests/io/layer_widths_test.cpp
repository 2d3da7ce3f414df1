// Layers of other widths than their neighbours, and layers that read the keys and values of earlier ones.

#include <gtest/gtest.h>

#include "tests/io/tiny_config.h"

namespace weft::layer_widths_test {

using namespace tiny_config;

json gemma4(const json& changes = json::object()) {
  json config = tiny_json();
  config.update({{"model_type", "gemma4_text"},
                 {"num_hidden_layers", 6},
                 {"hidden_act", "gelu_pytorch_tanh"},
                 {"head_dim", 16},
                 {"global_head_dim", 32},
                 {"num_kv_shared_layers", 3},
                 {"sliding_window", 9},
                 {"hidden_size_per_layer_input", 8},
                 {"vocab_size_per_layer_input", 40},
                 {"layer_types", json::array()}});
  config.erase("rope_theta");
  for (const char kind : std::string("sfssff"))
    config["layer_types"].push_back(kind == 's' ? "sliding_attention" : "full_attention");
  config.update(changes);
  return config;
}

std::vector<std::int64_t> of_layers(const ModelConfig& config, std::int64_t (ModelConfig::*number)(int) const) {
  std::vector<std::int64_t> numbers;
  for (int layer = 0; layer < config.layer_count; ++layer) numbers.push_back((config.*number)(layer));
  return numbers;
}

std::vector<int> kv_layers(const ModelConfig& config) {
  std::vector<int> layers;
  for (int layer = 0; layer < config.layer_count; ++layer) layers.push_back(config.kv_layer_of(layer));
  return layers;
}

using Numbers = std::vector<std::int64_t>;

TEST(LayerWidths, DependOnTheKindOfALayer) {
  const ModelConfig config = read(gemma4());
  EXPECT_EQ(of_layers(config, &ModelConfig::head_dim_of), (Numbers{16, 32, 16, 16, 32, 32}));
  EXPECT_EQ(of_layers(config, &ModelConfig::kv_head_count_of), Numbers(6, 2));
  EXPECT_EQ(of_layers(config, &ModelConfig::intermediate_size_of), Numbers(6, 96));
  EXPECT_EQ(kv_layers(config), (std::vector<int>{0, 1, 2, 2, 1, 1}));
  EXPECT_EQ(config.layer_input_width, 8);
  EXPECT_EQ(config.layer_input_vocab_size, 40);
  EXPECT_EQ(config.attention_scale, 1);
  EXPECT_EQ(config.rope.scaling.type, RopeScalingType::proportional) << "the default";
  EXPECT_EQ(config.rope.scaling.rotated_part, 0.25);
  EXPECT_EQ(config.rope.rotary_dim, 32);
  EXPECT_EQ(config.sliding_rope->rotary_dim, 16);
  EXPECT_EQ(config.sliding_rope->theta, 10000);
  EXPECT_EQ(read(gemma4({{"rope_parameters", nullptr}})).rope.scaling.rotated_part, 0.25);
}

TEST(LayerWidths, FollowTheSwitchesOfTheFile) {
  const json heads{{"num_global_key_value_heads", 1}};
  EXPECT_EQ(of_layers(read(gemma4(heads)), &ModelConfig::kv_head_count_of), Numbers(6, 2))
      << "only where keys are values";
  json changes = heads;
  changes.update({{"attention_k_eq_v", true}, {"use_double_wide_mlp", true}});
  const ModelConfig config = read(gemma4(changes));
  EXPECT_EQ(of_layers(config, &ModelConfig::kv_head_count_of), (Numbers{2, 1, 2, 2, 1, 1}));
  EXPECT_EQ(of_layers(config, &ModelConfig::intermediate_size_of), (Numbers{96, 96, 96, 192, 192, 192}));
  EXPECT_EQ(read(gemma4({{"intermediate_size", json(6, 80)}})).intermediate_size, 80);
}

// transformers 5.19 writes only what differs, without the keys of all such layers.
TEST(LayerWidths, AreReadFromTheLayersThatDiffer) {
  const auto gemma4_of = [](const json& layers) {
    json config = gemma4({{"attention_k_eq_v", true}, {"num_kv_shared_layers", 0}, {"per_layer_config", layers}});
    config.erase("global_head_dim");
    return config;
  };
  const json wide{{"head_dim", 32}, {"num_key_value_heads", 1}};
  const ModelConfig config = read(gemma4_of({{"01", wide}, {"04", wide}, {"5", wide}}));
  EXPECT_EQ(of_layers(config, &ModelConfig::head_dim_of), (Numbers{16, 32, 16, 16, 32, 32}));
  EXPECT_EQ(of_layers(config, &ModelConfig::kv_head_count_of), (Numbers{2, 1, 2, 2, 1, 1}));
  EXPECT_EQ(config.rope.rotary_dim, 32);
  EXPECT_EQ(of_layers(read(gemma4_of(json::object())), &ModelConfig::head_dim_of), Numbers(6, 16));
  const auto refusal_of = [&](const json& layers) { return message_of([&] { read(gemma4_of(layers)); }); };
  EXPECT_NE(refusal_of({{"1", {{"intermediate_size", 8}}}}).find("per_layer_config.1.intermediate_size"),
            std::string::npos);
  EXPECT_NE(refusal_of({{"6", wide}}).find("below num_hidden_layers 6 as keys, but has \"6\""), std::string::npos);
  EXPECT_NE(refusal_of({{"1", wide}, {"5", wide}}).find("layer 4 has 2 of width 16"), std::string::npos);
  EXPECT_NE(refusal_of({{"0", wide}}).find("layer 0 has 1 of width 32"), std::string::npos);
  json llama = tiny_json();
  llama["per_layer_config"] = {{"1", wide}};
  EXPECT_NE(message_of([&] { read(llama); }).find("per_layer_config asks for"), std::string::npos);
}

TEST(LayerWidths, TheLastLayerOfGemma4HasNoWindow) {
  for (const json& types : {json(6, "sliding_attention"), json()}) {
    const ModelConfig config = read(gemma4({{"layer_types", types}, {"num_kv_shared_layers", 0}}));
    EXPECT_TRUE(config.slides(4));
    EXPECT_FALSE(config.slides(5));
  }
}

TEST(LayerWidths, RefusesLayersWithoutKeysToRead) {
  const auto refusal = [](const json& changes) { return message_of([&] { read(gemma4(changes)); }); };
  EXPECT_NE(refusal({{"num_kv_shared_layers", 5}}).find("layer of the kind of layer 1 is before"), std::string::npos);
  EXPECT_NE(refusal({{"num_kv_shared_layers", 7}}), "");
  EXPECT_NE(refusal({{"attention_k_eq_v", true}, {"num_global_key_value_heads", 3}}).find("must divide"),
            std::string::npos);
  EXPECT_NE(refusal({{"intermediate_size", {80, 80, 80, 80, 80, 81}}}).find("intermediate_size"), std::string::npos);
  EXPECT_NE(refusal({{"enable_moe_block", true}, {"num_experts", 4}}).find("top_k_experts"), std::string::npos);
}

TEST(LayerWidths, HaveExpertsNextToTheFeedForwardIfTheyAreEnabled) {
  json experts{{"num_experts", 4}, {"top_k_experts", 2}, {"moe_intermediate_size", 24}};
  EXPECT_FALSE(read(gemma4(experts)).experts);
  experts["enable_moe_block"] = true;
  const ModelConfig config = read(gemma4(experts));
  ASSERT_TRUE(config.experts);
  EXPECT_EQ(config.experts->count, 4);
  EXPECT_EQ(config.experts->used, 2);
  EXPECT_EQ(config.experts->width, 24);
  EXPECT_TRUE(config.experts->normalizes);
  EXPECT_TRUE(config.routes(0));
  EXPECT_TRUE(config.has_dense(0));
}

GgufBytes gemma4_file(std::string_view left_out = "") {
  GgufBytes file = without(left_out, "gemma4");
  file.u32("gemma4.attention.key_length", 32).u32("gemma4.attention.value_length", 32);
  file.u32("gemma4.attention.key_length_swa", 16).u32("gemma4.attention.value_length_swa", 16);
  file.u32("gemma4.attention.sliding_window", 9);
  file.booleans("gemma4.attention.sliding_window_pattern", {true, false});
  return file;
}

TEST(LayerWidths, AreReadFromGgufFiles) {
  const ModelConfig config = read(gemma4_file());
  EXPECT_EQ(of_layers(config, &ModelConfig::head_dim_of), (Numbers{16, 32}));
  EXPECT_EQ(config.rope.rotary_dim, 32);
  EXPECT_EQ(config.sliding_rope->rotary_dim, 16);
  EXPECT_TRUE(config.full_values_are_keys) << "a layer without a window has no values in the file";
  GgufBytes lists = gemma4_file("gemma4.attention.head_count_kv");
  lists.i32s("gemma4.attention.head_count_kv", {2, 1});
  EXPECT_EQ(of_layers(read(lists), &ModelConfig::kv_head_count_of), (Numbers{2, 1}));
  GgufBytes negative = gemma4_file("gemma4.attention.head_count_kv");
  negative.i32s("gemma4.attention.head_count_kv", {2, -1});
  EXPECT_NE(message_of([&] { read(negative); }).find("head_count_kv must be above 0"), std::string::npos);
  GgufBytes widths = gemma4_file("gemma4.feed_forward_length");
  widths.i32s("gemma4.feed_forward_length", {96, 95});
  EXPECT_NE(message_of([&] { read(widths); }).find("feed_forward_length must be 96 for layer 1"), std::string::npos);
  GgufBytes short_list = gemma4_file("gemma4.feed_forward_length");
  short_list.i32s("gemma4.feed_forward_length", {96});
  EXPECT_NE(message_of([&] { read(short_list); }).find("a list of 2"), std::string::npos);
}

}  // namespace weft::layer_widths_test
