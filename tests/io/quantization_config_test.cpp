#include "io/quantization_config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/config_fields.h"
#include "quantize/number_format.h"
#include "tests/io/tiny_config.h"
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
  const BlockShape block = format == NumberFormat::w4a16 ? BlockShape{1, 64} : BlockShape{32, 48};
  return quantization_json(format, block, static_input, {"lm_head"});
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
  EXPECT_FALSE(int8.static_input);
  json calibrated = written(NumberFormat::int8);
  calibrated["config_groups"]["group_0"]["input_activations"].update({{"dynamic", false}, {"strategy", "tensor"}});
  EXPECT_TRUE(read(calibrated).static_input);
  const auto nvfp4 = read(written(NumberFormat::nvfp4));
  EXPECT_EQ(nvfp4.scheme, QuantizationScheme::nvfp4);
  EXPECT_EQ(nvfp4.codes, DType::f4e2m1);
  EXPECT_TRUE(nvfp4.static_input);
  const auto w4a16 = read(written(NumberFormat::w4a16));
  EXPECT_EQ(w4a16.scheme, QuantizationScheme::grouped);
  EXPECT_EQ(w4a16.groups.layout, GroupLayout::compressed_tensors);
  EXPECT_EQ(w4a16.groups.group_size, 64);
  EXPECT_FALSE(w4a16.groups.has_zero_points);
  EXPECT_FALSE(w4a16.groups.is_reordered);
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
  EXPECT_FALSE(config.quantizes("model.layers.0.altup.prediction_coefs.weight"));
  EXPECT_FALSE(config.quantizes("model.layers.0.mlp.up_proj.weight"));
  EXPECT_TRUE(config.quantizes("model.layers.01.mlp.up_proj.weight"));
  EXPECT_FALSE(config.quantizes("model.layers.1.mlp.down_proj.weight"));
  EXPECT_FALSE(config.quantizes("model.layers.1.mlp.up_proj.bias"));
}

TEST(QuantizationConfig, LeavesOutTheEmbeddingByTheNameThatItsArchitectureHas) {
  json changes{
      {"model_type", "mamba2"}, {"num_heads", 4}, {"n_groups", 2}, {"quantization_config", written(NumberFormat::fp8)}};
  json config = tiny_config::tiny_json();
  config.update(changes);
  const QuantizationConfig quantization = tiny_config::read(config).quantization.value();
  EXPECT_FALSE(quantization.quantizes("backbone.embeddings.weight"));
  EXPECT_TRUE(quantization.quantizes("backbone.layers.0.mixer.in_proj.weight"));
}

TEST(QuantizationConfig, RefusesWhatItDoesNotUnderstandByItsKey) {
  const auto changed = [](NumberFormat format, const std::string& pointer, const json& value) {
    json config = written(format);
    config[json::json_pointer(pointer)] = value;
    return refusal(config);
  };
  using enum NumberFormat;
  const std::string where = "[config.json] quantization_config.";
  const std::string methods =
      "quant_method must be fp8 or compressed-tensors or gptq or awq or auto-round or bitsandbytes or bitnet or "
      "modelopt or "
      "modelopt_fp4 or quark or fbgemm_fp8 or mxfp4, but is ";
  EXPECT_EQ(changed(fp8, "/quant_method", "quip"), where + methods + "\"quip\"");
  EXPECT_EQ(changed(fp8, "/quant_method", nullptr), where + methods + "missing");
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
  EXPECT_EQ(
      changed(int8, "/config_groups/group_1", json::object()),
      "[config.json] wanted quantization_config.config_groups.group_1.targets, a list of modules, but there is none");
  EXPECT_EQ(changed(int8, "/config_groups", json::object()), where + "config_groups must hold groups, but is empty");
  EXPECT_EQ(changed(int8, "/ignore", "lm_head"), where + "ignore must be a list of strings, but is not");
}

const json kGptq{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}, {"desc_act", true}, {"sym", false}};
const json kAwq{{"quant_method", "awq"}, {"bits", 4},         {"group_size", 64},
                {"zero_point", true},    {"version", "gemm"}, {"modules_to_not_convert", {"mlp.gate"}}};
const json kNf4{{"quant_method", "bitsandbytes"},
                {"load_in_4bit", true},
                {"load_in_8bit", false},
                {"bnb_4bit_quant_type", "nf4"},
                {"bnb_4bit_use_double_quant", true},
                {"llm_int8_skip_modules", nullptr}};

TEST(QuantizationConfig, ReadsGroupedCodes) {
  const GroupedCodes gptq = read(kGptq).groups, awq = read(kAwq).groups, nf4 = read(kNf4).groups;
  EXPECT_EQ(gptq.layout, GroupLayout::gptq);
  EXPECT_EQ(gptq.group_size, 128);
  EXPECT_TRUE(gptq.is_reordered);
  EXPECT_TRUE(gptq.zeros_less_one);
  EXPECT_EQ(awq.layout, GroupLayout::awq);
  EXPECT_EQ(awq.group_size, 64);
  EXPECT_FALSE(awq.zeros_less_one);
  json symmetric = kAwq;
  symmetric["zero_point"] = false;
  EXPECT_TRUE(read(symmetric).groups.has_zero_points) << "AutoRound stores them, too";
  EXPECT_EQ(nf4.layout, GroupLayout::bitsandbytes);
  EXPECT_TRUE(nf4.has_quantized_scales);
  json second = kGptq;
  second["checkpoint_format"] = "gptq_v2";
  second["group_size"] = -1;
  EXPECT_FALSE(read(second).groups.zeros_less_one);
  EXPECT_EQ(read(second).groups.group_size, 0);
  EXPECT_FALSE(read(second).groups.is_reordered);  // all columns are in one group
}

TEST(QuantizationConfig, NamesTheTensorsOfGroupedCodes) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(quantized_names(read(kGptq), "a.weight").all(), (Names{"a.qweight", "a.scales", "a.qzeros", "a.g_idx"}));
  EXPECT_EQ(quantized_names(read(kAwq), "a.weight").all(), (Names{"a.qweight", "a.scales", "a.qzeros"}));
  EXPECT_EQ(quantized_names(read(kNf4), "a.weight").all(),
            (Names{"a.weight", "a.weight.absmax", "a.weight.quant_state.bitsandbytes__nf4",
                   "a.weight.quant_state.bitsandbytes__fp4", "a.weight.quant_map", "a.weight.nested_absmax",
                   "a.weight.nested_quant_map"}));
  EXPECT_EQ(quantized_names(read(written(NumberFormat::w4a16)), "a.weight").all(),
            (Names{"a.weight_packed", "a.weight_scale", "a.weight_zero_point", "a.weight_g_idx", "a.weight_shape"}));
}

TEST(QuantizationConfig, LeavesOutAnyPartOfANameWhereTheMethodDoes) {
  EXPECT_FALSE(read(kAwq).quantizes("model.layers.3.mlp.gate.weight"));
  EXPECT_TRUE(read(kAwq).quantizes("model.layers.3.mlp.gate_proj.weight"));
}

TEST(QuantizationConfig, RefusesGroupsThatItDoesNotUnderstandByTheirKey) {
  const auto changed = [](json config, const std::string& key, const json& value) {
    config[json::json_pointer(key)] = value;
    return refusal(config);
  };
  const auto expect = [](const std::string& message, const std::string& key, const std::string& came) {
    EXPECT_NE(message.find("[config.json]"), std::string::npos) << message;
    EXPECT_NE(message.find("quantization_config." + key), std::string::npos) << message;
    EXPECT_NE(message.find(came), std::string::npos) << message;
  };
  expect(changed(kGptq, "/bits", 5), "bits", "2, 3, 4 or 8, but is 5");
  expect(changed(kGptq, "/group_size", 48), "group_size", "48");
  expect(changed(kGptq, "/desc_act", nullptr), "desc_act", "there is none");
  expect(changed(kGptq, "/checkpoint_format", "marlin"), "checkpoint_format", "\"marlin\"");
  expect(changed(kGptq, "/dynamic", {{"+:.*down.*", {{"bits", 6}}}}), "dynamic.+:.*down.*.bits", "6");
  expect(changed(kGptq, "/dynamic", {{"+:.*down.*", 4}}), "dynamic.+:.*down.*", "4");
  expect(changed(kGptq, "/modules_in_block_to_quantize", {{"mlp.up_proj", 4}}), "modules_in_block_to_quantize", "4");
  expect(changed(kAwq, "/bits", 8), "bits", "8");
  expect(changed(kAwq, "/zero_point", nullptr), "zero_point", "there is none");
  expect(changed(kAwq, "/version", "gemv"), "version", "\"gemv\"");
  expect(changed(kNf4, "/bnb_4bit_quant_type", "int4"), "bnb_4bit_quant_type", "\"int4\"");
  expect(changed(kNf4, "/load_in_8bit", true), "load_in_8bit", "both are");
  expect(changed(kNf4, "/load_in_4bit", false), "load_in_4bit", "neither is");
  const std::string weights = "config_groups.group_0.weights.";
  const json w4a16 = written(NumberFormat::w4a16);
  expect(changed(w4a16, "/config_groups/group_0/weights/num_bits", 3), weights + "num_bits", "4 or 8, but is 3");
  expect(changed(w4a16, "/config_groups/group_0/weights/strategy", "tensor"), weights + "strategy", "\"tensor\"");
  expect(changed(w4a16, "/config_groups/group_0/weights/actorder", "random"), weights + "actorder", "\"random\"");
  expect(changed(w4a16, "/config_groups/group_0/input_activations", json::object()),
         "config_groups.group_0.input_activations", "null");
  expect(changed(w4a16, "/config_groups/group_0/targets", {"LlamaAttention"}), "config_groups.group_0.targets",
         "\"LlamaAttention\"");
  json twice = w4a16;
  twice["config_groups"]["group_1"] = twice["config_groups"]["group_0"];
  expect(refusal(twice), "config_groups.group_1.targets", "config_groups.group_0 has, too");
}

json group_of(const json& targets, int bits, int group_size) {
  const json weights{{"type", "int"}, {"num_bits", bits}, {"strategy", "group"}, {"group_size", group_size}};
  return {{"targets", targets}, {"weights", weights}};
}

TEST(QuantizationConfig, GivesEachModuleTheGroupOfItsTarget) {
  json config = written(NumberFormat::w4a16);
  config["ignore"] = {"lm_head", "model.layers.2"};
  config["config_groups"] = {{"group_0", group_of({"Linear"}, 4, 32)},
                             {"group_1", group_of({"re:.*self_attn.*"}, 8, 128)},
                             {"group_2", group_of({"model.layers.1.mlp.up_proj"}, 8, 64)}};
  const QuantizationConfig read_config = read(config);
  const auto groups = [&](const std::string& module) { return read_config.of(module + ".weight")->groups; };
  EXPECT_EQ(groups("model.layers.0.mlp.up_proj").bits, 4);
  EXPECT_EQ(groups("model.layers.0.self_attn.q_proj").bits, 8);
  EXPECT_EQ(groups("model.layers.0.self_attn.q_proj").group_size, 128);
  EXPECT_EQ(groups("model.layers.1.mlp.up_proj").group_size, 64);
  EXPECT_EQ(read_config.of("model.layers.2.self_attn.q_proj.weight"), nullptr);  // ignored
  EXPECT_EQ(read_config.of("lm_head.weight"), nullptr);
}

TEST(QuantizationConfig, LeavesModulesPlainThatNoTargetNames) {
  json config = written(NumberFormat::w4a16);
  config["config_groups"] = {{"group_0", group_of({"re:.*mlp.*"}, 4, 32)}};
  EXPECT_TRUE(read(config).quantizes("model.layers.0.mlp.up_proj.weight"));
  EXPECT_FALSE(read(config).quantizes("model.layers.0.self_attn.q_proj.weight"));
}

TEST(QuantizationConfig, RefusesAModuleThatTwoGroupsName) {
  json config = written(NumberFormat::w4a16);
  config["config_groups"] = {{"group_0", group_of({"re:.*mlp.*"}, 4, 32)}, {"group_1", group_of({"re:.*up.*"}, 8, 32)}};
  const QuantizationConfig read_config = read(config);
  EXPECT_TRUE(read_config.quantizes("model.layers.0.mlp.down_proj.weight"));
  const std::string message = message_of([&] { read_config.quantizes("model.layers.0.mlp.up_proj.weight"); });
  for (const char* part : {"model.layers.0.mlp.up_proj", "re:.*mlp.*", "re:.*up.*"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(QuantizationConfig, ReadsGroupsOfDifferentFormats) {
  json config = written(NumberFormat::int8), w4a16 = written(NumberFormat::w4a16);
  json first = config["config_groups"].begin().value(), second = w4a16["config_groups"].begin().value();
  first["format"] = "int-quantized";
  second["format"] = "pack-quantized";
  second["targets"] = {"re:.*down_proj"};
  config["format"] = "mixed-precision";
  config["config_groups"] = {{"group_0", first}, {"group_1", second}};
  const QuantizationConfig read_config = read(config);
  EXPECT_EQ(read_config.of("a.up_proj.weight")->scheme, QuantizationScheme::scaled);
  EXPECT_EQ(read_config.of("a.down_proj.weight")->scheme, QuantizationScheme::grouped);
  config["config_groups"]["group_1"].erase("format");
  EXPECT_NE(refusal(config).find("config_groups.group_1.format must be"), std::string::npos);
}

// Weights that were only made sparse have no codes.
TEST(QuantizationConfig, LeavesAllModulesPlainWithoutGroups) {
  json config{{"quant_method", "compressed-tensors"},
              {"sparsity_config", {{"format", "dense"}, {"sparsity_structure", "2:4"}, {"targets", {"Linear"}}}}};
  for (const json& groups : {json(), json::object()})
    for (const json& format : {json(), json("dense")}) {
      config["config_groups"] = groups;
      config["format"] = format;
      EXPECT_FALSE(read(config).quantizes("model.layers.0.mlp.up_proj.weight"));
    }
  config["format"] = "pack-quantized";
  EXPECT_NE(refusal(config).find("quantization_config.format must be dense"), std::string::npos);
  config["format"] = nullptr;
  config["sparsity_config"] = {{"format", "sparse-bitmask"}};
  EXPECT_NE(refusal(config).find("sparsity_config.format must be dense"), std::string::npos);
}

TEST(QuantizationConfig, IsReadUnderItsEarlierKey) {
  json quantization = written(NumberFormat::w4a16);
  const auto read_early = [&] {
    const json config{{"quantization_config", nullptr}, {"compression_config", quantization}};
    return quantization_from_json(JsonFields(config, "config.json")).value();
  };
  EXPECT_EQ(read_early().groups.group_size, 64);
  quantization["mine"] = 1;
  EXPECT_EQ(read_early().unknown_keys, std::vector<std::string>{"compression_config.mine"});
  quantization["format"] = "marlin-24";
  EXPECT_NE(message_of(read_early).find("compression_config.format"), std::string::npos);
}

// The first rule that matches decides, in the order of the file.
TEST(QuantizationConfig, FollowsTheRulesOfGptq) {
  nlohmann::ordered_json rules;
  rules["-:.*layers\\.0\\..*"] = json::object();
  rules["+:.*down.*"] = {{"bits", 8}, {"group_size", 64}, {"desc_act", false}, {"damp_percent", 0.1}};
  rules[".*up.*"] = {{"bits", 3}, {"sym", true}, {"mine", 1}};
  nlohmann::ordered_json config = kGptq;
  config["dynamic"] = rules;
  const nlohmann::ordered_json all{{"quantization_config", config}};
  const QuantizationConfig read_config = quantization_from_json(JsonFields(all, "config.json")).value();
  EXPECT_EQ(read_config.of("model.layers.0.mlp.down_proj.weight"), nullptr);
  const GroupedCodes down = read_config.of("model.layers.1.mlp.down_proj.weight")->groups;
  EXPECT_EQ(down.bits, 8);
  EXPECT_EQ(down.group_size, 64);
  EXPECT_FALSE(down.is_reordered);
  EXPECT_FALSE(down.is_symmetric);
  const GroupedCodes up = read_config.of("model.layers.1.mlp.up_proj.weight")->groups;
  EXPECT_EQ(up.bits, 3);
  EXPECT_EQ(up.group_size, 128);
  EXPECT_TRUE(up.is_reordered);
  EXPECT_TRUE(up.is_symmetric);
  EXPECT_EQ(read_config.of("model.layers.1.mlp.gate_proj.weight")->groups.bits, 4);
  EXPECT_EQ(read_config.unknown_keys, std::vector<std::string>{"quantization_config.dynamic..*up.*.mine"});
}

TEST(QuantizationConfig, QuantizesTheModulesOfBlocksThatAreListed) {
  json config = kGptq;
  config["modules_in_block_to_quantize"] = {{"self_attn.q_proj", "self_attn.k_proj"}, {"mlp.up_proj"}};
  EXPECT_TRUE(read(config).quantizes("model.layers.1.self_attn.k_proj.weight"));
  EXPECT_TRUE(read(config).quantizes("model.layers.1.mlp.up_proj.weight"));
  EXPECT_FALSE(read(config).quantizes("model.layers.1.self_attn.v_proj.weight"));
  EXPECT_FALSE(read(config).quantizes("model.layers.1.mlp.gate_up_proj.weight"));
}

TEST(QuantizationConfig, ReadsTheThreeKindsOfBitsandbytes) {
  json config = kNf4;
  config["bnb_4bit_quant_type"] = "fp4";
  EXPECT_EQ(read(kNf4).groups.values, CodeValues::nf4);
  EXPECT_EQ(read(config).groups.values, CodeValues::fp4);
  EXPECT_EQ(quantized_names(read(config), "a.weight").shape, "a.weight.quant_state.bitsandbytes__fp4");
  const json bytes{{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}};
  EXPECT_EQ(read(bytes).groups.bits, 8);
  EXPECT_EQ(quantized_names(read(bytes), "a.weight").all(),
            (std::vector<std::string>{"a.weight", "a.SCB", "a.weight_format"}));
}

TEST(QuantizationConfig, KnowsBitsandbytesWithoutAName) {
  EXPECT_EQ(read({{"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}}).method, "bitsandbytes");
}

TEST(QuantizationConfig, ReadsWeightsAlone) {
  for (const NumberFormat format : {NumberFormat::int8, NumberFormat::fp8_per_token, NumberFormat::nvfp4}) {
    json config = written(format);
    EXPECT_FALSE(read(config).weights_only);
    config["config_groups"]["group_0"]["input_activations"] = nullptr;
    EXPECT_TRUE(read(config).of("a.weight")->weights_only);
    EXPECT_EQ(quantized_names(read(config), "a.weight").input_scale, "");
  }
}

TEST(QuantizationConfig, SaysThatScalesOfKeysAndValuesAreNotApplied) {
  json fp8 = written(NumberFormat::fp8), int8 = written(NumberFormat::int8);
  EXPECT_TRUE(read(int8).warnings.empty()) << "null is no scheme";
  fp8["kv_cache_scheme"] = "static";
  int8["kv_cache_scheme"] = {{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}, {"dynamic", false}};
  for (const json& config : {fp8, int8}) {
    const auto warnings = read(config).warnings;
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_TRUE(warnings[0].starts_with("[config.json] quantization_config.kv_cache_scheme is not applied"));
  }
}

TEST(QuantizationConfig, RefusesRotatedAndSparseWeightsAndListsUnknownKeys) {
  json config = written(NumberFormat::int8);
  config["transform_config"] = json::object();
  config["sparsity_config"] = {{"format", "dense"}};
  EXPECT_EQ(refusal(config), "");
  config["transform_config"] = {{"config_groups", json::object()}};
  config["sparsity_config"] = {{"format", "dense"}, {"targets", json::array()}, {"sparsity_structure", "unstructured"}};
  EXPECT_EQ(refusal(config), "");
  json& group = config["config_groups"].begin().value();
  group["mine"] = 1;
  group["weights"]["its"] = 2;
  EXPECT_EQ(read(config).unknown_keys,
            (std::vector<std::string>{"quantization_config.config_groups.group_0.mine",
                                      "quantization_config.config_groups.group_0.weights.its"}));
  config["transform_config"] = {{"config_groups", {{"R1", 1}}}};
  EXPECT_NE(refusal(config).find("transform_config asks for"), std::string::npos);
  config["transform_config"] = nullptr;
  config["sparsity_config"] = {{"format", "sparse-24-bitmask"}};
  EXPECT_NE(refusal(config).find("sparsity_config.format must be dense"), std::string::npos);
  config["sparsity_config"] = nullptr;
  group["input_activations"]["dynamic"] = "local";
  EXPECT_NE(refusal(config).find("input_activations.dynamic"), std::string::npos);
}

}  // namespace weft::quantization_config_test
