// Which modules a quantization_config reaches: those of a language model inside a checkpoint, and the head.

#include <gtest/gtest.h>

#include "io/config_fields.h"
#include "io/quantization_config.h"
#include "quantize/number_format.h"

namespace weft::quantized_modules_test {

using nlohmann::json;

QuantizationConfig read(const json& quantization) {
  const json config{{"quantization_config", quantization}};
  return quantization_from_json(JsonFields(config, "config.json")).value();
}

json w4a16_json() { return quantization_json(NumberFormat::w4a16, {1, 64}, false, {"lm_head"}); }

const json kNf4{{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}};

// The names of a folder whose language model is a part.
TEST(QuantizedModules, OfALanguageModelAreKnownByTheirOwnNames) {
  const std::string gate = "model.layers.3.mlp.gate_proj.weight", query = "model.layers.3.self_attn.q_proj.weight";
  for (const char* outer : {"language_model.model.", "model.language_model."}) {
    json named = w4a16_json(), matched = named;
    named["ignore"] = {std::string(outer) + "layers.3.mlp"};
    matched["config_groups"].begin().value()["targets"] = {"re:" + std::string(outer) + "layers.*q_proj$"};
    for (const json& config : {named, matched}) {
      EXPECT_TRUE(read(config).quantizes(query));
      EXPECT_FALSE(read(config).quantizes(gate));
    }
    json skipped = kNf4;
    skipped["llm_int8_skip_modules"] = {std::string(outer) + "layers.3.mlp.gate_proj", "language_model.lm_head"};
    EXPECT_TRUE(read(skipped).quantizes(query));
    EXPECT_FALSE(read(skipped).quantizes(gate));
  }
  json others = w4a16_json();
  others["ignore"] = {"re:^(?!.*language_model).*"};
  EXPECT_TRUE(read(others).quantizes(query)) << "only what is around the language model is plain";
}

// GPTQ states it; of other methods the files do, unless the config leaves the head out.
TEST(QuantizedModules, HaveTheHeadIfTheConfigOrTheFilesDo) {
  const auto reaches = [](const json& quantization, const std::string& tensor) {
    QuantizationConfig config = read(quantization);
    find_quantized_modules([&](const std::string& name) { return name == tensor; }, {}, config);
    return config.quantizes("lm_head.weight");
  };
  json gptq{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}, {"desc_act", true}};
  EXPECT_FALSE(reaches(gptq, ""));
  gptq["lm_head"] = true;
  gptq["modules_in_block_to_quantize"] = {{"mlp.up_proj"}};
  EXPECT_TRUE(reaches(gptq, ""));
  json w4a16 = w4a16_json();
  EXPECT_FALSE(reaches(w4a16, "lm_head.weight_scale"));
  w4a16["ignore"] = json::array();
  EXPECT_TRUE(reaches(w4a16, "lm_head.weight_scale"));
  EXPECT_FALSE(reaches(w4a16, "lm_head.weight"));
  w4a16["config_groups"].begin().value()["targets"] = {"re:.*mlp.*", "lm_head"};
  EXPECT_TRUE(reaches(w4a16, "lm_head.weight_scale"));
  json nf4 = kNf4;
  EXPECT_TRUE(reaches(nf4, "lm_head.weight.absmax"));
  nf4["llm_int8_skip_modules"] = {"lm_head"};
  EXPECT_FALSE(reaches(nf4, "lm_head.weight.absmax"));
}

}  // namespace weft::quantized_modules_test
