#include "io/quantization_config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/config_fields.h"
#include "quantize/number_format.h"
#include "tests/thrown_message.h"

namespace weft::quantization_config_test {

using nlohmann::json;

QuantizationConfig read(const json& quantization) {
  const json config{{"quantization_config", quantization}};
  return quantization_from_json(JsonFields(config, "config.json")).value();
}

std::string refusal(const json& quantization) {
  return message_of([&] { read(quantization); });
}

json written(NumberFormat format, bool static_input = false) {
  return quantization_json(format, {32, 48}, static_input, {"lm_head"});
}

TEST(QuantizationConfig, ReadsWhatEveryFormatWrites) {
  const auto fp8 = read(written(NumberFormat::fp8)), fixed = read(written(NumberFormat::fp8, true));
  EXPECT_EQ(fp8.scheme, QuantizationScheme::scaled);
  EXPECT_EQ(fp8.codes, DType::f8e4m3);
  EXPECT_FALSE(fp8.static_input);
  EXPECT_TRUE(fixed.static_input);
  const auto block = read(written(NumberFormat::fp8_block));
  EXPECT_EQ(block.scheme, QuantizationScheme::block);
  EXPECT_EQ(block.block_rows, 32);
  EXPECT_EQ(block.block_columns, 48);
  const auto token = read(written(NumberFormat::fp8_per_token)), int8 = read(written(NumberFormat::int8));
  EXPECT_EQ(token.scheme, QuantizationScheme::scaled);
  EXPECT_EQ(token.codes, DType::f8e4m3);
  EXPECT_FALSE(token.static_input);
  EXPECT_EQ(int8.codes, DType::i8);
  const auto nvfp4 = read(written(NumberFormat::nvfp4));
  EXPECT_EQ(nvfp4.scheme, QuantizationScheme::nvfp4);
  EXPECT_EQ(nvfp4.codes, DType::f4e2m1);
  EXPECT_TRUE(nvfp4.static_input);
  EXPECT_TRUE(quantization_json(NumberFormat::bf16, {}, false, {}).is_null());
}

TEST(QuantizationConfig, NamesTheTensorsAsEachMethodDoes) {
  const auto names = [](NumberFormat format, bool static_input = false) {
    return quantized_names(read(written(format, static_input)), "a.b.weight");
  };
  EXPECT_EQ(names(NumberFormat::fp8_block).scale, "a.b.weight_scale_inv");
  EXPECT_EQ(names(NumberFormat::fp8_block).codes, "a.b.weight");
  EXPECT_EQ(names(NumberFormat::fp8).scale, "a.b.weight_scale");
  EXPECT_EQ(names(NumberFormat::fp8).input_scale, "");
  EXPECT_EQ(names(NumberFormat::fp8, true).input_scale, "a.b.input_scale");
  EXPECT_EQ(names(NumberFormat::nvfp4).codes, "a.b.weight_packed");
  EXPECT_EQ(names(NumberFormat::nvfp4).global_scale, "a.b.weight_global_scale");
  EXPECT_EQ(names(NumberFormat::nvfp4).input_scale, "a.b.input_global_scale");
}

TEST(QuantizationConfig, LeavesOutTheHeadTheEmbeddingAndWhatIsIgnored) {
  json fp8 = written(NumberFormat::fp8);
  fp8["modules_to_not_convert"] = {"model.layers.0", "re:.*down_proj"};
  const QuantizationConfig config = read(fp8);
  EXPECT_FALSE(config.quantizes("lm_head.weight"));
  EXPECT_FALSE(config.quantizes("model.embed_tokens.weight"));
  EXPECT_FALSE(config.quantizes("model.layers.0.mlp.up_proj.weight"));
  EXPECT_TRUE(config.quantizes("model.layers.01.mlp.up_proj.weight"));
  EXPECT_FALSE(config.quantizes("model.layers.1.mlp.down_proj.weight"));
  EXPECT_FALSE(config.quantizes("model.layers.1.mlp.up_proj.bias"));
}

TEST(QuantizationConfig, RefusesWhatItDoesNotUnderstandByItsKey) {
  const auto changed = [](NumberFormat format, const std::string& pointer, const json& value) {
    json config = written(format);
    config[json::json_pointer(pointer)] = value;
    return refusal(config);
  };
  using enum NumberFormat;
  const std::string where = "[config.json] quantization_config.";
  EXPECT_EQ(changed(fp8, "/quant_method", "gptq"),
            where + "quant_method must be fp8 or compressed-tensors, but is \"gptq\"");
  EXPECT_EQ(changed(fp8, "/quant_method", nullptr),
            where + "quant_method must be fp8 or compressed-tensors, but is missing");
  EXPECT_EQ(changed(fp8_block, "/fmt", "e5m2"), where + "fmt must be e4m3 or float8_e4m3fn, but is \"e5m2\"");
  EXPECT_EQ(changed(fp8, "/activation_scheme", "token"),
            where + "activation_scheme must be dynamic or static, but is \"token\"");
  EXPECT_EQ(changed(fp8_block, "/activation_scheme", "static"),
            where + "activation_scheme must be dynamic where weights have blocks, but is static");
  EXPECT_EQ(changed(fp8_block, "/weight_block_size", {64}),
            where + "weight_block_size must be rows and columns, each 1 to 1048576, but is [64]");
  EXPECT_EQ(changed(fp8_block, "/weight_block_size", {0, 64}),
            where + "weight_block_size must be rows and columns, each 1 to 1048576, but is [0, 64]");
  const std::string group = where + "config_groups.group_0.";
  EXPECT_EQ(changed(int8, "/config_groups/group_0/weights/symmetric", false),
            group + "weights.symmetric must be true: zero points are not supported, but is false");
  EXPECT_EQ(changed(int8, "/config_groups/group_0/weights/num_bits", 4),
            group + "weights.num_bits must be 8, but is 4");
  EXPECT_EQ(changed(int8, "/config_groups/group_0/weights/strategy", "group"),
            group + "weights.strategy must be tensor or channel or block, but is \"group\"");
  EXPECT_EQ(changed(nvfp4, "/config_groups/group_0/weights/group_size", 32),
            group + "weights.group_size must be 16, but is 32");
  EXPECT_EQ(changed(int8, "/config_groups/group_1", json::object()),
            where + "config_groups must hold one group, but holds 2");
  EXPECT_EQ(changed(int8, "/config_groups/group_0/input_activations", nullptr),
            "[config.json] wanted quantization_config.config_groups.group_0.input_activations, an object, but there is "
            "none");
  EXPECT_EQ(changed(int8, "/ignore", "lm_head"), where + "ignore must be a list of strings, but is not");
}

}  // namespace weft::quantization_config_test
