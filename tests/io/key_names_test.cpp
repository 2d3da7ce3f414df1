// Keys of config.json for which an architecture has names of its own.

#include <gtest/gtest.h>

#include "io/model_config.h"
#include "tests/io/tiny_config.h"

namespace weft::key_names_test {

using namespace tiny_config;

json gpt2_json() {
  return json::parse(R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 64, "n_layer": 2,
    "n_head": 4, "n_positions": 128, "vocab_size": 48, "activation_function": "gelu_new"})");
}

ModelConfig read_with(const std::string& key, const json& value) {
  json config = gpt2_json();
  config[key] = value;
  return read(config);
}

TEST(KeyNames, AreReadLikeTheUsualOnesAndHavePrecedence) {
  const ModelConfig config = read(gpt2_json());
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.layer_count, 2);
  EXPECT_EQ(config.head_count, 4);
  EXPECT_EQ(config.context_length, 128);
  EXPECT_EQ(config.intermediate_size, 256) << "what follows from the width";
  EXPECT_EQ(config.unknown_keys, std::vector<std::string>());
  EXPECT_EQ(read_with("n_inner", nullptr).intermediate_size, 256);
  EXPECT_EQ(read_with("n_inner", 96).intermediate_size, 96);
  EXPECT_EQ(read_with("intermediate_size", 96).intermediate_size, 96);
  EXPECT_EQ(read_with("hidden_size", 32).hidden_size, 64);
  EXPECT_EQ(read_with("hidden_act", "relu").hidden_act, "gelu_new");
}

TEST(KeyNames, AreThoseOfMessages) {
  EXPECT_NE(message_of([] { read_with("n_head", 5); }).find("n_head must divide n_embd 64, but is 5"),
            std::string::npos);
  EXPECT_NE(message_of([] { read_with("n_layer", "2"); }).find("n_layer must be an integer"), std::string::npos);
  EXPECT_EQ(read(gpt2_json()).activation_key, "activation_function");
}

// In the newer form of Falcon's files the number of key heads counts, in the older one a switch.
TEST(KeyNames, OfKeyHeadsCountInTheNewerFormOfFalcon) {
  const auto read_falcon = [](const json& changes) {
    json config = tiny_json();
    config.erase("num_key_value_heads");
    config["model_type"] = "falcon";
    config["layer_norm_epsilon"] = 1e-5;
    config.update(changes);
    return read(config);
  };
  EXPECT_EQ(read_falcon({{"num_kv_heads", 4}}).kv_head_count, 1);
  EXPECT_EQ(read_falcon({{"multi_query", false}}).kv_head_count, 4);
  const ModelConfig newer = read_falcon({{"new_decoder_architecture", true}, {"num_kv_heads", 2}});
  EXPECT_EQ(newer.kv_head_count, 2);
  EXPECT_TRUE(newer.norms_each_half);
  EXPECT_FALSE(read_falcon({{"new_decoder_architecture", true}, {"num_ln_in_parallel_attn", 1}}).norms_each_half);
}

}  // namespace weft::key_names_test
