// `quantization` of folders of mlx-lm.

#include <algorithm>

#include <gtest/gtest.h>

#include "io/config_fields.h"
#include "io/quantization_config.h"
#include "tests/thrown_message.h"

namespace weft::mlx_config_test {

const Json kCodes{{"group_size", 64}, {"bits", 4}, {"mode", "affine"}};

std::optional<QuantizationConfig> read(const Json& config) {
  return quantization_from_json(JsonFields(config, "config.json"));
}

QuantizationConfig with(const std::string& key, const Json& value) {
  Json codes = kCodes;
  codes[key] = value;
  return read({{"quantization", codes}}).value();
}

std::string refusal(const std::string& key, const Json& value) {
  return message_of([&] { with(key, value); });
}

TEST(MlxConfig, IsUnderEitherKey) {
  const Json configs[] = {
      {{"quantization", kCodes}},
      {{"quantization_config", kCodes}},
      {{"quantization_config", {{"group_size", 64}, {"bits", 4}}}},
      {{"quantization", kCodes}, {"quantization_config", {{"quant_method", "auto-round"}, {"packing_format", "mlx"}}}},
      {{"quantization", kCodes}, {"quantization_config", kCodes}}};
  for (const Json& config : configs) {
    const QuantizationConfig came = read(config).value();
    EXPECT_EQ(came.groups.layout, GroupLayout::mlx);
    EXPECT_EQ(came.groups.bits, 4);
    EXPECT_EQ(came.groups.group_size, 64);
    EXPECT_TRUE(came.quantizes("model.embed_tokens.weight"));
    EXPECT_TRUE(came.unknown_keys.empty());
  }
  EXPECT_EQ(read({{"quantization", nullptr}}), std::nullopt);
  const Json gptq{{"quantization_config", {{"group_size", 64}, {"bits", 4}, {"desc_act", false}}}};
  EXPECT_NE(message_of([&] { read(gptq); }).find("quant_method"), std::string::npos);
  const Json both{{"quantization", kCodes}, {"quantization_config", {{"quant_method", "fp8"}}}};
  EXPECT_NE(message_of([&] { read(both); }).find("quantization and quantization_config"), std::string::npos);
}

TEST(MlxConfig, HasCodesForSingleModules) {
  const std::string down = "model.layers.0.mlp.down_proj", up = "model.layers.0.mlp.up_proj.weight";
  for (const std::string& name : {down, "language_model." + down}) {
    const QuantizationConfig config = with(name, {{"bits", 6}});
    EXPECT_EQ(config.of(down + ".weight")->groups.bits, 6) << name;
    EXPECT_EQ(config.of(down + ".weight")->groups.group_size, 64) << name;
    EXPECT_EQ(config.of(up)->groups.bits, 4) << name;
  }
  EXPECT_FALSE(with(down, false).quantizes(down + ".weight"));
  EXPECT_TRUE(with(down, true).quantizes(down + ".weight"));
}

// As mlx's layers have it: what a module does not state is not that of the rest.
TEST(MlxConfig, CompletesCodesByTheirMode) {
  const Json codes{
      {"group_size", 32},         {"bits", 4},
      {"mode", "mxfp4"},          {"a", {{"bits", 8}}},
      {"b", {{"mode", "nvfp4"}}}, {"c", {{"mode", "mxfp8"}, {"bits", 8}, {"group_size", 32}, {"global_scale", false}}}};
  const QuantizationConfig config = read({{"quantization", codes}}).value();
  const auto check = [&](const char* weight, CodeValues values, int bits, std::int64_t group_size) {
    const GroupedCodes& came = config.of(weight)->groups;
    EXPECT_EQ(came.values, values) << weight;
    EXPECT_EQ(came.bits, bits) << weight;
    EXPECT_EQ(came.group_size, group_size) << weight;
  };
  check("a.weight", CodeValues::integers, 8, 64);
  check("b.weight", CodeValues::floats, 4, 16);
  check("c.weight", CodeValues::floats, 8, 32);
  check("d.weight", CodeValues::floats, 4, 32);
  EXPECT_EQ(config.of("b.weight")->codes, DType::f4e2m1);
  EXPECT_EQ(config.of("b.weight")->groups.scales, DType::f8e4m3);
  EXPECT_EQ(config.of("c.weight")->codes, DType::f8e4m3);
  EXPECT_EQ(config.of("d.weight")->groups.scales, DType::f8e8m0);
  EXPECT_EQ(quantized_names(*config.of("a.weight"), "a.weight").minimums, "a.biases");
  EXPECT_EQ(quantized_names(*config.of("d.weight"), "d.weight").minimums, "");
}

TEST(MlxConfig, QuantizesTheModulesThatHaveScales) {
  QuantizationConfig config = read({{"quantization", kCodes}}).value();
  const std::vector<std::string> names{"model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight",
                                       "model.layers.0.mlp.up_proj.scales", "lm_head.weight", "lm_head.scales"};
  const auto has = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  find_quantized_modules(has, names, config);
  EXPECT_FALSE(config.quantizes("model.embed_tokens.weight"));
  EXPECT_FALSE(config.quantizes("model.layers.0.mlp.down_proj.weight"));
  EXPECT_TRUE(config.quantizes("model.layers.0.mlp.up_proj.weight"));
  EXPECT_TRUE(config.quantizes("lm_head.weight"));
}

TEST(MlxConfig, StatesTheCodesOfStacksOfExperts) {
  for (const auto& [stack, expert] :
       {std::pair{"model.layers.0.mlp.switch_mlp.up_proj", "model.layers.0.mlp.experts.7.up_proj"},
        {"model.layers.0.block_sparse_moe.switch_mlp.up_proj", "model.layers.0.block_sparse_moe.experts.7.w3"},
        {"model.layers.0.mlp.experts.up_proj", "model.layers.0.mlp.experts.7.up_proj"},
        {"language_model.model.layers.0.experts.switch_glu.up_proj", "model.layers.0.experts.7.up_proj"},
        {"model.layers.0.self_attn.embed_q", "model.layers.0.self_attn.embed_q.7"}}) {
    QuantizationConfig config = with(stack, {{"bits", 6}});
    EXPECT_EQ(config.of(expert + std::string(".weight"))->groups.bits, 6) << expert;  // without names of tensors
    find_quantized_modules([](const std::string&) { return true; }, {expert + std::string(".scales"), "other.scales"},
                           config);
    ASSERT_TRUE(config.quantizes(expert + std::string(".weight"))) << expert;
    EXPECT_EQ(config.of(expert + std::string(".weight"))->groups.bits, 6) << expert;
    EXPECT_EQ(config.of("other.weight")->groups.bits, 4);
  }
}

TEST(MlxConfig, NamesWhatItDoesNotUnderstand) {
  EXPECT_NE(refusal("mode", "nf4").find("quantization.mode must be affine or mxfp4 or nvfp4 or mxfp8, but is"),
            std::string::npos);
  EXPECT_EQ(refusal("mode", "mxfp4"),
            "[config.json] quantization.bits and quantization.group_size must be 4 and 32 where quantization.mode is "
            "mxfp4, but are 4 and 64");
  EXPECT_NE(refusal("a", {{"mode", "mxfp8"}, {"bits", 4}}).find("quantization.a.bits"), std::string::npos);
  EXPECT_NE(refusal("a", {{"mode", "nvfp4"}, {"global_scale", true}}).find("quantization.a.global_scale"),
            std::string::npos);
  EXPECT_EQ(refusal("bits", 7), "[config.json] quantization.bits must be 2, 3, 4, 5, 6 or 8, but is 7");
  EXPECT_NE(refusal("bits", 1).find("quantization.bits"), std::string::npos);
  EXPECT_EQ(refusal("group_size", 16), "[config.json] quantization.group_size must be 32, 64 or 128, but is 16");
  EXPECT_EQ(refusal("group_size", 96), "[config.json] quantization.group_size must be 32, 64 or 128, but is 96");
  EXPECT_NE(refusal("a", {{"bits", 9}}).find("quantization.a.bits"), std::string::npos);
  EXPECT_EQ(with("awq", 4).unknown_keys, std::vector<std::string>{"quantization.awq"});
  EXPECT_EQ(with("a", {{"bits", 4}, {"b", 1}}).unknown_keys, std::vector<std::string>{"quantization.a.b"});
}

}  // namespace weft::mlx_config_test
