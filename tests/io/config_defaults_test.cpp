// What config.json means where it omits a key, and where a key names what the model does not have.

#include "io/config_defaults.h"

#include <gtest/gtest.h>

#include "tests/io/tiny_config.h"

namespace weft::config_defaults_test {

using namespace tiny_config;

// Of a type that is an alias, too.
TEST(ConfigDefaults, AreThoseOfTheType) {
  const auto epsilon_of = [](const char* type) {
    const json outer{{"model_type", "whole"},
                     {"text_config",
                      {{"model_type", type},
                       {"hidden_size", 64},
                       {"intermediate_size", 96},
                       {"num_hidden_layers", 2},
                       {"num_attention_heads", 4},
                       {"num_key_value_heads", 2},
                       {"vocab_size", 48}}}};
    return model_config_from_json(outer.dump(), "config.json", make_model_registry().find("qwen2", "test").facts)
        .norm_eps;
  };
  EXPECT_EQ(epsilon_of("qwen2_vl_text"), 1e-5);
  EXPECT_EQ(epsilon_of("qwen2"), 1e-6);
}

TEST(ConfigDefaults, DoNotReplaceNumbers) {
  const Json config = whole_config(R"({"model_type": "llama", "rms_norm_eps": 0.5})", "config.json", facts_of("llama"));
  EXPECT_EQ(config["rms_norm_eps"], 0.5);
  EXPECT_EQ(config["max_position_embeddings"], 2048);
}

// StarCoder 2's default is such an id.
TEST(ConfigDefaults, AFirstTokenThatTheModelDoesNotHaveIsAWarning) {
  for (const int id : {-1, 48}) {
    auto config = tiny_json();
    config["bos_token_id"] = id;
    EXPECT_EQ(read(config).bos_token_id, std::nullopt);
    EXPECT_EQ(read(config).warnings.size(), 1U);
  }
}

}  // namespace weft::config_defaults_test
