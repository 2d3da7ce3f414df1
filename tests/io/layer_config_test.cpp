// Which layers have a window and which have rotary positions, by config.json and by GGUF metadata.

#include "io/layer_config.h"

#include <gtest/gtest.h>

#include "tests/io/tiny_config.h"

namespace weft::layer_config_test {

using namespace tiny_config;

// A letter for each layer: s for a window, f for none; capital if the layer has no rotary positions.
std::string layers_of(const ModelConfig& config) {
  std::string text;
  for (int layer = 0; layer < config.layer_count; ++layer) {
    const bool slides = config.slides(layer);
    text += config.rope_of(layer) == nullptr ? (slides ? 'S' : 'F') : (slides ? 's' : 'f');
  }
  return text;
}

std::string layers_of(const std::string& architecture, const json& changes = json::object()) {
  json config = tiny_json();
  config["model_type"] = architecture;
  config["num_hidden_layers"] = 8;
  config["layer_norm_eps"] = 1e-5;
  config.update(changes);
  return layers_of(read(config));
}

TEST(LayerConfig, TakesTheFamilysPeriodOfLayersWithoutAWindow) {
  EXPECT_EQ(layers_of("gemma2", {{"sliding_window", 9}}), "sfsfsfsf");
  EXPECT_EQ(layers_of("gemma3_text", {{"sliding_window", 9}}), "sssssfss");
  EXPECT_EQ(layers_of("gemma3_text", {{"sliding_window", 9}, {"sliding_window_pattern", 3}}), "ssfssfss");
  EXPECT_EQ(layers_of("olmo3"), "sssfsssf") << "without a key: the default length";
  EXPECT_EQ(layers_of("olmo3", {{"sliding_window", nullptr}}), "ffffffff");
  EXPECT_EQ(layers_of("gemma2", {{"layer_types", json(8, "full_attention")}}), "ffffffff");
}

TEST(LayerConfig, TakesListsOfGlobalAndLocalLayersWithTheirRepetitions) {
  const auto layers = [](const json& types) { return layers_of("gpt_neo", {{"attention_types", types}}); };
  EXPECT_EQ(layers_of("gpt_neo"), "FSFSFSFS") << "without the key: every second layer";
  EXPECT_EQ(layers(json::parse(R"([[["global", "local"], 4]])")), "FSFSFSFS");
  EXPECT_EQ(layers(json::parse(R"([[["local"], 3], [["global"], 5]])")), "SSSFFFFF");
  EXPECT_EQ(layers(json::parse(R"([[["global"], 8]])")), "FFFFFFFF");
  for (const char* wrong : {R"([[["global", "local"], 3]])", R"([[["global", "local"], 5]])", R"([[["global"], "8"]])",
                            R"([[["near"], 8]])", R"([["global", 8]])", R"("global")", R"([[["local"], 1000000]])"})
    EXPECT_NE(message_of([&] { layers(json::parse(wrong)); }).find("attention_types must be lists of"),
              std::string::npos)
        << wrong;
}

// As in transformers, where Qwen's mixtures have rules of their own.
TEST(LayerConfig, TakesTheRuleOfQwensFamilies) {
  const auto layers = [](const char* architecture, const json& more = json::object()) {
    json changes{{"use_sliding_window", true}, {"sliding_window", 9}, {"max_window_layers", 3}};
    changes.update(more);
    return layers_of(architecture, changes);
  };
  EXPECT_EQ(layers("qwen2"), "fffsssss");
  EXPECT_EQ(layers("qwen2_moe"), "sfsfffff");
  EXPECT_EQ(layers("qwen2_moe", {{"layer_types", json(8, "full_attention")}}), "ffffffff");
  EXPECT_EQ(layers("qwen3_moe"), "ssssssss");
  EXPECT_EQ(layers("qwen3_moe", {{"layer_types", json(8, "full_attention")}}), "ssssssss");
}

TEST(LayerConfig, LeavesLayersWithoutPositions) {
  EXPECT_EQ(layers_of("smollm3"), "fffFfffF");
  EXPECT_EQ(layers_of("smollm3", {{"no_rope_layer_interval", 2}}), "fFfFfFfF");
  EXPECT_EQ(layers_of("smollm3", {{"no_rope_layers", {1, 0, 1, 1, 1, 1, 1, 0}}}), "fFfffffF");
  EXPECT_EQ(layers_of("cohere2"), "sssFsssF");
  EXPECT_EQ(layers_of("exaone4", {{"sliding_window_pattern", "LLG"}}), "ssFssFss");
  EXPECT_EQ(layers_of("exaone4", {{"sliding_window", nullptr}}), "ffffffff");
  EXPECT_EQ(layers_of("exaone4", {{"layer_types", json(8, "full_attention")}}), "FFFFFFFF") << "no window is rotated";
}

TEST(LayerConfig, RefusesListsOfAnotherLengthAndOtherPatterns) {
  const auto refusal_of = [](const std::string& architecture, const json& changes) {
    return message_of([&] { layers_of(architecture, changes); });
  };
  EXPECT_NE(refusal_of("smollm3", {{"no_rope_layers", {1, 0}}}).find("no_rope_layers must be a list of"),
            std::string::npos);
  EXPECT_NE(refusal_of("exaone4", {{"sliding_window_pattern", "LGL"}}).find("sliding_window_pattern must be a number"),
            std::string::npos);
  EXPECT_NE(refusal_of("llama", {{"no_rope_layers", {1, 0}}}).find("no_rope_layers asks for layers without"),
            std::string::npos);
}

TEST(LayerConfig, ReadsTheWindowsOfGgufFiles) {
  const auto gguf = [](const char* architecture, const std::function<void(GgufBytes&)>& add) {
    const std::string prefix = architecture;
    GgufBytes file = without(prefix + ".block_count", architecture);
    file.u32(prefix + ".block_count", 8);
    file.u32(prefix + ".attention.sliding_window", 9);
    add(file);
    return layers_of(read(file));
  };
  EXPECT_EQ(gguf("gemma2", [](GgufBytes&) {}), "sfsfsfsf");
  EXPECT_EQ(gguf("gemma3", [](GgufBytes&) {}), "sssssfss");
  EXPECT_EQ(gguf("olmo2", [](GgufBytes& file) { file.u32("olmo2.attention.sliding_window_pattern", 2); }), "sfsfsfsf");
}

TEST(LayerConfig, GivesLayersWithAWindowPositionsOfTheirOwn) {
  json config = tiny_json();
  config.update({{"model_type", "gemma3_text"}, {"num_hidden_layers", 6}, {"sliding_window", 9}});
  config["rope_theta"] = 1e6;
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  const ModelConfig old = read(config);
  config.erase("rope_theta");
  config.erase("rope_scaling");
  config["rope_parameters"] = {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}},
                               {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}};
  for (const ModelConfig& read_config : {old, read(config)}) {
    EXPECT_EQ(read_config.rope_of(5)->theta, 1e6);
    EXPECT_EQ(read_config.rope_of(5)->scaling.type, RopeScalingType::linear);
    EXPECT_EQ(read_config.rope_of(0)->theta, 10000);
    EXPECT_EQ(read_config.rope_of(0)->scaling.type, RopeScalingType::none);
  }
}

// The switch is one of Qwen's; the classes of others do not read it.
TEST(LayerConfig, OnlySomeFamiliesAskWhetherThereIsAWindow) {
  const json off{{"sliding_window", 8}, {"use_sliding_window", false}};
  EXPECT_EQ(layers_of("mistral", off), "ssssssss");
  EXPECT_EQ(layers_of("qwen2", off), "ffffffff");
}

}  // namespace weft::layer_config_test
