#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/config_fields.h"
#include "io/quantization_config.h"
#include "tests/thrown_message.h"

namespace weft::modelopt_config_test {

using nlohmann::json;

QuantizationConfig read(const json& quantization) {
  const json config{{"quantization_config", quantization}};
  return quantization_from_json(JsonFields(config, "config.json")).value();
}

TEST(ModelOptConfig, ReadsBothAlgorithms) {
  const json fp8{{"quant_method", "modelopt"}, {"quant_algo", "FP8"}, {"ignore", {"lm_head", "model.layers.0.*attn*"}}};
  const auto scaled = read(fp8);
  EXPECT_EQ(scaled.scheme, QuantizationScheme::scaled);
  EXPECT_TRUE(scaled.static_input);
  EXPECT_FALSE(scaled.quantizes("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_TRUE(scaled.quantizes("model.layers.10.self_attn.q_proj.weight"));
  EXPECT_TRUE(scaled.quantizes("model.layers.0.mlp.up_proj.weight"));
  const json nvfp4{{"producer", {{"name", "modelopt"}}}, {"quantization", {{"quant_algo", "NVFP4"}}}};
  const auto names = quantized_names(read(nvfp4), "a.weight");
  EXPECT_EQ(names.all(), (std::vector<std::string>{"a.weight", "a.weight_scale", "a.weight_scale_2", "a.input_scale"}));
  EXPECT_EQ(message_of([] {
              read({{"quant_method", "modelopt"}, {"quant_algo", "W4A8_AWQ"}});
            }),
            "[config.json] quantization_config.quant_algo must be FP8 or NVFP4, but is \"W4A8_AWQ\"");
}

TEST(ModelOptConfig, IsAddedFromItsOwnFile) {
  std::string config = R"({"model_type": "llama", "quantization_config": {"quant_method": "fp8"}})";
  const std::string own = R"({"quantization": {"quant_algo": "FP8"}})", before = config;
  EXPECT_FALSE(add_modelopt_config(own, "hf_quant_config.json", "config.json", config));
  EXPECT_EQ(config, before);
  config = R"({"model_type": "llama", "quantization_config": null})";
  EXPECT_TRUE(add_modelopt_config(own, "hf_quant_config.json", "config.json", config));
  EXPECT_EQ(json::parse(config)["quantization_config"]["quant_method"], "modelopt");
  EXPECT_NE(message_of([&] {
              config = "{}";
              add_modelopt_config("[", "hf_quant_config.json", "config.json", config);
            }).find("[hf_quant_config.json]"),
            std::string::npos);
}

TEST(ModelOptConfig, NamesScalesAndKeysThatItDoesNotApply) {
  const auto config = read({{"quant_method", "modelopt"},
                            {"quantization", {{"quant_algo", "FP8"}, {"kv_cache_quant_algo", "FP8"}, {"mine", 1}}}});
  ASSERT_EQ(config.warnings.size(), 1U);
  EXPECT_NE(config.warnings[0].find("quantization.kv_cache_quant_algo is not applied"), std::string::npos);
  EXPECT_EQ(config.unknown_keys, std::vector<std::string>{"quantization_config.quantization.mine"});
}

}  // namespace weft::modelopt_config_test
