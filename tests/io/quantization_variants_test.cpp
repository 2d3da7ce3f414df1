// Keys of quantization_config that writers state in several ways, and names of modules as each method compares them.

#include <gtest/gtest.h>

#include "io/config_fields.h"
#include "io/quantization_config.h"
#include "tests/thrown_message.h"

namespace weft::quantization_variants_test {

using nlohmann::json;

QuantizationConfig read(const json& quantization, const std::string& architecture = "LlamaForCausalLM") {
  const json config{{"architectures", {architecture}}, {"quantization_config", quantization}};
  return quantization_from_json(JsonFields(config, "config.json")).value();
}

std::string refusal(const json& quantization) {
  return message_of([&] { read(quantization); });
}

const json kGptq{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}, {"desc_act", false}};

TEST(QuantizationVariants, HaveTheFormatOfGptqUnderEitherKey) {
  json config = kGptq;
  EXPECT_TRUE(read(config).groups.zeros_less_one);
  config["format"] = "gptq_v2";
  EXPECT_FALSE(read(config).groups.zeros_less_one);
  config["checkpoint_format"] = "gptq_v2";
  EXPECT_FALSE(read(config).groups.zeros_less_one);
  config["checkpoint_format"] = "gptq";
  EXPECT_EQ(refusal(config),
            "[config.json] quantization_config.checkpoint_format and quantization_config.format must agree, but are "
            "gptq and gptq_v2");
  config["format"] = "gptq_p";
  EXPECT_NE(refusal(config).find("quantization_config.format must be gptq or gptq_v2"), std::string::npos);
}

TEST(QuantizationVariants, KnowWhetherZeroPointsBorrow) {
  json config = kGptq;
  config["meta"] = {{"quantizer", {"gptqmodel:5.0.0"}}};
  EXPECT_TRUE(read(config).groups.zeros_borrow);
  config["checkpoint_format"] = "gptq_v2";
  EXPECT_FALSE(read(config).groups.zeros_borrow);
  config = kGptq;
  for (const json& quantizer : {json("auto_gptq:0.7"), json(4), json({4}), json()}) {
    config["meta"] = {{"quantizer", quantizer}};
    EXPECT_FALSE(read(config).groups.zeros_borrow);
  }
}

TEST(QuantizationVariants, LeaveOutTextsOfNamesWhereAwqDoes) {
  json config{{"quant_method", "awq"}, {"bits", 4}, {"group_size", 64}, {"zero_point", true}};
  const auto leaves_out = [&](const std::string& text, const std::string& module) {
    config["modules_to_not_convert"] = {text};
    return !read(config).quantizes(module + ".weight");
  };
  const std::string query = "model.layers.0.self_attn.q_proj";
  for (const char* text : {"layers.0.", "model.layers.0", "self_attn", "attn", "_proj", "self_attn.q_proj"})
    EXPECT_TRUE(leaves_out(text, query)) << text;
  for (const char* text : {"layers.1", "layers.0.self", "mlp", "layers.0.mlp."})
    EXPECT_FALSE(leaves_out(text, query)) << text;
  EXPECT_FALSE(leaves_out("layers.1", "model.layers.10.mlp.up_proj"));
  EXPECT_FALSE(leaves_out("layers.1.", "model.layers.10.mlp.up_proj"));
  EXPECT_FALSE(leaves_out("gate", "model.layers.0.mlp.experts.3.gate_proj"));
}

TEST(QuantizationVariants, LackTheTypeOfBitsandbytes) {
  json config{{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}};
  EXPECT_EQ(read(config).groups.values, CodeValues::fp4);
  for (const char* storage : {"uint8", "int8", "float16", "bfloat16", "float32"}) {
    config["bnb_4bit_quant_storage"] = storage;
    EXPECT_EQ(refusal(config), "") << storage;
  }
  config["bnb_4bit_quant_storage"] = "float64";
  EXPECT_NE(refusal(config).find("bnb_4bit_quant_storage"), std::string::npos);
}

json w4a16(const json& targets, const json& ignored) {
  const json weights{{"type", "int"}, {"num_bits", 4}, {"strategy", "group"}, {"group_size", 32}};
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"ignore", ignored},
          {"config_groups", {{"group_0", {{"targets", targets}, {"weights", weights}}}}}};
}

// In folders of models that take images, too, no name begins with model.layers.
TEST(QuantizationVariants, MatchPatternsWithTheNamesOfTheWholeModel) {
  const std::string up = "model.layers.0.mlp.up_proj.weight", images = "Gemma3ForConditionalGeneration";
  const json linear = json::array({"Linear"});
  const json anchored = w4a16(linear, json::array({R"(re:model\.layers\.0\..*)"}));
  EXPECT_FALSE(read(anchored).quantizes(up));
  EXPECT_TRUE(read(anchored, images).quantizes(up));
  EXPECT_FALSE(read(anchored, "Qwen2_5_VLForConditionalGeneration").quantizes(up)) << "no module is around its layers";
  const json floating = w4a16(linear, json::array({R"(re:.*layers\.0\..*)"}));
  EXPECT_FALSE(read(floating).quantizes(up));
  EXPECT_FALSE(read(floating, images).quantizes(up));
  const json targets = w4a16(json::array({R"(re:model\.layers.*)"}), json::array());
  EXPECT_TRUE(read(targets).quantizes(up));
  EXPECT_FALSE(read(targets, images).quantizes(up));
  json gptq = kGptq;
  gptq["dynamic"] = {{R"(-:model\.layers\.0\..*)", json::object()}};
  EXPECT_FALSE(read(gptq).quantizes(up));
  EXPECT_TRUE(read(gptq, images).quantizes(up));
}

const json kAutoRound{{"quant_method", "auto-round"},
                      {"bits", 4},
                      {"group_size", 128},
                      {"sym", true},
                      {"data_type", "int"},
                      {"packing_format", "auto_round:auto_gptq"},
                      {"block_name_to_quantize", "model.layers,model.visual.blocks"}};

TEST(QuantizationVariants, GiveModulesTheirOwnConfigWhereAutoRoundDoes) {
  json config = kAutoRound;
  config["extra_config"] = {{"model.layers.0.mlp.up_proj", {{"bits", 16}, {"data_type", "float"}}},
                            {"model.layers.1.mlp.up_proj", {{"bits", 8}, {"group_size", 32}, {"sym", false}}},
                            {"layers\\.[23]\\.mlp", {{"bits", 16}}},
                            {"lm_head", {{"bits", 4}}}};
  const QuantizationConfig read_config = read(config);
  const auto of = [&](const std::string& module) { return read_config.of(module + ".weight"); };
  EXPECT_EQ(of("model.layers.0.mlp.up_proj"), nullptr);
  EXPECT_EQ(of("model.layers.3.mlp.up_proj"), nullptr);
  ASSERT_NE(of("model.layers.1.mlp.up_proj"), nullptr);
  EXPECT_EQ(of("model.layers.1.mlp.up_proj")->groups.bits, 8);
  EXPECT_EQ(of("model.layers.1.mlp.up_proj")->groups.group_size, 32);
  EXPECT_FALSE(of("model.layers.1.mlp.up_proj")->groups.is_symmetric);
  ASSERT_NE(of("model.layers.4.mlp.up_proj"), nullptr);
  EXPECT_EQ(of("model.layers.4.mlp.up_proj")->groups.group_size, 128);
  EXPECT_TRUE(of("model.layers.4.mlp.up_proj")->groups.is_symmetric);
  EXPECT_TRUE(read_config.unknown_keys.empty());
}

TEST(QuantizationVariants, NameModulesOfTheWholeModelWhereAutoRoundDoes) {
  json config = kAutoRound;
  config["block_name_to_quantize"] = {"model.language_model.layers"};
  config["extra_config"] = {{"model.language_model.layers.0.mlp.up_proj", {{"bits", 16}}},
                            {"^model\\.language_model\\.layers\\.1\\.", {{"bits", 16}}}};
  const QuantizationConfig whole = read(config, "Gemma3ForConditionalGeneration");
  EXPECT_FALSE(whole.quantizes("model.layers.0.mlp.up_proj.weight"));
  EXPECT_FALSE(whole.quantizes("model.layers.1.mlp.up_proj.weight"));
  EXPECT_TRUE(whole.quantizes("model.layers.2.mlp.up_proj.weight"));
}

TEST(QuantizationVariants, RefuseWhatIsNotThereOfAutoRound) {
  const auto refused = [](const std::string& pointer, const json& value) {
    json config = kAutoRound;
    config[json::json_pointer(pointer)] = value;
    return refusal(config);
  };
  const auto expect = [](const std::string& message, const std::string& key) {
    EXPECT_NE(message.find("quantization_config." + key), std::string::npos) << message;
  };
  expect(refused("/packing_format", "auto_round:fp8"), "packing_format");
  expect(refused("/data_type", "mx_fp"), "data_type");
  expect(refused("/bits", 5), "bits");
  expect(refused("/sym", nullptr), "sym");
  expect(refused("/act_bits", 8), "act_bits");
  expect(refused("/rotation_config", {{"a", 1}}), "rotation_config");
  expect(refused("/extra_config/a", {{"bits", 5}}), "extra_config.a.bits");
  expect(refused("/extra_config/a", {{"data_type", "mx_fp"}}), "extra_config.a.data_type");
  expect(refused("/extra_config/a", {{"act_bits", 8}}), "extra_config.a.act_bits");
  const std::string pattern = refused("/extra_config", {{"layers.(", {{"bits", 16}}}});
  EXPECT_NE(pattern.find("[quantization_config] modules \"re:.*(?:layers.()\""), std::string::npos) << pattern;
  json awq = kAutoRound;
  awq["packing_format"] = "auto_round:auto_awq";
  awq["bits"] = 8;
  expect(refusal(awq), "bits");
}

// The head may be in the language model or next to it.
TEST(QuantizationVariants, MatchTheHeadByEitherName) {
  for (const char* pattern : {"re:lm_head", "re:.*lm_head", R"(re:language_model\.lm_head)"}) {
    QuantizationConfig config =
        read(w4a16(json::array({"Linear"}), json::array({pattern})), "Gemma3ForConditionalGeneration");
    find_quantized_modules([](const std::string&) { return true; }, {}, config);
    EXPECT_FALSE(config.quantizes("lm_head.weight")) << pattern;
  }
}

// The files decide whether experts of mxfp4 were dequantized.
TEST(QuantizationVariants, LeaveOutExpertsThatHavePlainWeights) {
  const std::string experts = "model.layers.0.mlp.experts.gate_up_proj";
  for (const char* end : {"", "_blocks"}) {
    QuantizationConfig config = read({{"quant_method", "mxfp4"}, {"dequantize", true}});
    find_quantized_modules([&](const std::string& name) { return name == experts + end; }, {}, config);
    EXPECT_EQ(config.quantizes(experts), *end != '\0');
    EXPECT_FALSE(config.has_quantized_head);
  }
}

}  // namespace weft::quantization_variants_test
