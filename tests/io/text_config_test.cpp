#include "io/text_config.h"

#include <gtest/gtest.h>

#include "io/architecture_name.h"
#include "io/model_config.h"
#include "tests/io/tiny_config.h"

namespace weft::text_config_test {

using namespace tiny_config;

TEST(TextConfig, HasTheKeysAboutTheWholeCheckpoint) {
  const Json outer = parse_json(R"({"model_type": "gemma3", "torch_dtype": "bfloat16", "eos_token_id": [1, 106],
    "vision_config": {}, "compression_config": {}, "text_config": {"model_type": "gemma3_text", "hidden_size": 64, "eos_token_id": 5}})");
  const Json inner = text_config(outer, "config.json");
  EXPECT_EQ(inner.at("model_type"), "gemma3_text");
  EXPECT_EQ(inner.at("torch_dtype"), "bfloat16");
  EXPECT_EQ(inner.at("eos_token_id"), 5);
  EXPECT_TRUE(inner.contains("compression_config"));
  EXPECT_FALSE(inner.contains("vision_config"));
  EXPECT_EQ(architecture_of(JsonFields(inner, "config.json")), "gemma3_text");
  const Json alone = parse_json(R"({"model_type": "llama"})");
  EXPECT_EQ(text_config(alone, "config.json"), alone);
}

TEST(TextConfig, HasTheDefaultsOfItsClass) {
  const std::string outer = R"({"model_type": "llava", "vision_config": {}, "text_config": {"model_type": "mistral",
    "hidden_size": 5120, "head_dim": 128, "num_hidden_layers": 40, "sliding_window": null}})";
  const ModelConfig config =
      model_config_from_json(outer, "config.json", make_model_registry().find("mistral", "test").facts);
  EXPECT_EQ(config.hidden_size, 5120);
  EXPECT_EQ(config.head_count, 32);
  EXPECT_EQ(config.kv_head_count, 8);
  EXPECT_EQ(config.intermediate_size, 14336);
  EXPECT_EQ(config.context_length, 131072);
  auto alone = tiny_config::tiny_json();
  alone.erase("num_attention_heads");
  EXPECT_THROW(tiny_config::read(alone), UserError);
}

TEST(TextConfig, TheHeadIsTheEmbeddingIfTheWholeModelSaysSo) {
  const auto is_tied = [](const json& outer, const json& inner, const char* type = "mistral3") {
    json whole{{"model_type", type}, {"text_config", {{"model_type", "ministral3"}}}};
    if (!outer.is_null()) whole["tie_word_embeddings"] = outer;
    if (!inner.is_null()) whole["text_config"]["tie_word_embeddings"] = inner;
    return text_config(whole, "config.json").value("tie_word_embeddings", false);
  };
  EXPECT_TRUE(is_tied(true, false));
  EXPECT_FALSE(is_tied(false, true));
  EXPECT_TRUE(is_tied(nullptr, true));
  EXPECT_TRUE(is_tied(true, nullptr));
  EXPECT_TRUE(is_tied(false, true, "qwen2_5_vl")) << "older files have the key inside";
}

TEST(TextConfig, KnowsTheNamesInTheWholeCheckpoint) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_in_checkpoint("lm_head.weight"), (Names{"language_model.lm_head.weight", "embed_out.weight",
                                                          "output.weight", "transformer.output_layer.weight"}));
  EXPECT_EQ(names_in_checkpoint("model.norm.weight"),
            (Names{"language_model.model.norm.weight", "model.language_model.norm.weight"}));
}

TEST(TextConfig, NamesWeightsAsInFoldersOfTheLanguageModel) {
  EXPECT_EQ(name_in_language_model("language_model.model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(name_in_language_model("language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(name_in_language_model("embed_out.weight"), "lm_head.weight");
  EXPECT_EQ(name_in_language_model("model.language_model.layers.0.mlp.up_proj.weight"),
            "model.layers.0.mlp.up_proj.weight");
  for (const char* other : {"model.norm.weight", "vision_tower.patch.weight", "model.vision_tower.patch.weight"})
    EXPECT_EQ(name_in_language_model(other), other);
}

}  // namespace weft::text_config_test
