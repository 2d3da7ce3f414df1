#include "io/model_config.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "builtin/models.h"
#include "tests/io/gguf_bytes.h"
#include "tests/io/tiny_config.h"
#include "tests/thrown_message.h"

namespace weft::model_config_test {

using namespace tiny_config;

TEST(ModelConfig, ReadsAHuggingFaceLlama) {
  const auto config = read(tiny_json());
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.architecture_class, "LlamaForCausalLM");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 96);
  EXPECT_EQ(config.layer_count, 2);
  EXPECT_EQ(config.head_count, 4);
  EXPECT_EQ(config.kv_head_count, 2);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.vocab_size, 48);
  EXPECT_EQ(config.context_length, 128);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_EQ(config.rope.theta, 500000);
  EXPECT_EQ(config.rope.rotary_dim, 16);
  EXPECT_EQ(config.rope.pairing, RotaryPairing::halves);
  EXPECT_EQ(config.rope.scaling.type, RopeScalingType::none);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_EQ(config.dtype, DType::bf16);
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.eos_token_ids, (std::vector<std::int64_t>{2, 7}));
  EXPECT_EQ(config.pad_token_id, std::nullopt);
}

TEST(ModelConfig, FillsInWhatAConfigJsonMayLeaveOut) {
  auto json = tiny_json();
  for (const auto key : {"num_key_value_heads", "rope_theta", "tie_word_embeddings", "torch_dtype", "eos_token_id"})
    json.erase(key);
  const auto config = read(json);
  EXPECT_EQ(config.kv_head_count, 4);
  EXPECT_EQ(config.rope.theta, 10000);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_EQ(config.dtype, DType::f32);
  EXPECT_TRUE(config.eos_token_ids.empty());
}

TEST(ModelConfig, FillsInWhatAGemmasConfigJsonLeavesOut) {
  auto json = tiny_json();
  json["model_type"] = "gemma";
  EXPECT_EQ(read(json).hidden_activation, "");
  for (const auto key : {"tie_word_embeddings", "hidden_act"}) json.erase(key);
  EXPECT_TRUE(read(json).tie_word_embeddings);
  EXPECT_EQ(read(json).hidden_act, "gelu_pytorch_tanh");
  json["hidden_activation"] = "gelu";
  json["tie_word_embeddings"] = false;
  EXPECT_EQ(read(json).hidden_activation, "gelu");
  EXPECT_FALSE(read(json).tie_word_embeddings);
  json["hidden_activation"] = 5;
  EXPECT_EQ(message_of([&] { read(json); }), "[config.json] hidden_activation must be a string, but is 5");
  for (const auto& value : {nlohmann::json(true), nlohmann::json("all")})
    EXPECT_NE(refusal("use_bidirectional_attention", value).find("use_bidirectional_attention must be false or vision"),
              std::string::npos);
  EXPECT_EQ(refusal("use_bidirectional_attention", "vision"), "") << "text alone is causal";
}

TEST(ModelConfig, TakesAHeadDimThatIsNotTheQuotient) {
  auto json = tiny_json();
  json["num_attention_heads"] = 3;
  json["num_key_value_heads"] = 1;
  json["head_dim"] = 32;
  json["partial_rotary_factor"] = 0.5;
  const auto config = read(json);
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_EQ(config.rope.rotary_dim, 16);
}

TEST(ModelConfig, ReadsNewerSpellings) {
  auto json = tiny_json();
  json.erase("torch_dtype");
  json.erase("rope_theta");
  json["dtype"] = "float16";
  json["rope_parameters"] = {
      {"rope_type", "linear"}, {"factor", 2}, {"rope_theta", 1e6}, {"partial_rotary_factor", 0.25}};
  json["model_type"] = "mistral";
  json["sliding_window"] = 32;
  json["num_local_experts"] = 8;
  json["quantization_config"] = {{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}};
  json["pad_token_id"] = -1;
  const auto config = read(json);
  EXPECT_EQ(config.dtype, DType::f16);
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.rope.rotary_dim, 4);
  EXPECT_EQ(config.rope.scaling.type, RopeScalingType::linear);
  EXPECT_EQ(config.rope.scaling.factor, 2);
  EXPECT_EQ(config.sliding_window, 32);
  EXPECT_EQ(config.expert_count, 8);
  ASSERT_TRUE(config.quantization.has_value());
  EXPECT_EQ(config.quantization->method, "fp8");
  EXPECT_EQ(config.pad_token_id, std::nullopt);
}

// As in transformers: by layer_types, and without it by the family's default.
TEST(ModelConfig, ReadsWhichLayersHaveAWindow) {
  const auto windows = [](const nlohmann::json& changes) {
    auto json = tiny_json();
    json["num_hidden_layers"] = 3;
    json.update(changes);
    const ModelConfig config = read(json);
    std::vector<std::int64_t> of_layers;
    for (int layer = 0; layer < 3; ++layer) of_layers.push_back(config.window_of(layer).value_or(0));
    return of_layers;
  };
  using Windows = std::vector<std::int64_t>;
  const auto types = nlohmann::json::parse(R"(["sliding_attention", "full_attention", "sliding_attention"])");
  EXPECT_EQ(windows(nlohmann::json::object()), (Windows{0, 0, 0}));
  EXPECT_EQ(windows({{"model_type", "mistral"}, {"sliding_window", 8}}), (Windows{8, 8, 8}));
  EXPECT_EQ(windows({{"model_type", "mistral"}, {"sliding_window", 8}, {"layer_types", types}}), (Windows{8, 0, 8}));
  EXPECT_EQ(windows({{"model_type", "mistral"}}), (Windows{4096, 4096, 4096}));
  EXPECT_EQ(windows({{"model_type", "mistral"}, {"sliding_window", nullptr}}), (Windows{0, 0, 0}));
  nlohmann::json qwen{{"model_type", "qwen3"}, {"sliding_window", 8}, {"max_window_layers", 2}};
  EXPECT_EQ(windows(qwen), (Windows{0, 0, 0}));
  qwen["use_sliding_window"] = true;
  EXPECT_EQ(windows(qwen), (Windows{0, 0, 8}));
  qwen["layer_types"] = types;
  EXPECT_EQ(windows(qwen), (Windows{8, 0, 8}));
  qwen.erase("layer_types");
  qwen.erase("max_window_layers");
  EXPECT_EQ(windows(qwen), (Windows{0, 0, 0})) << "28 layers have none";
}

TEST(ModelConfig, NamesTheKeyOfAWindowThatItDoesNotTake) {
  const auto refusal_of = [](const nlohmann::json& changes) {
    auto json = tiny_json();
    json["model_type"] = "mistral";
    json["num_hidden_layers"] = 2;
    json.update(changes);
    return message_of([&] { read(json); });
  };
  EXPECT_EQ(refusal_of({{"sliding_window", 0}}), "[config.json] sliding_window must be 1 to 16777216, but is 0");
  EXPECT_EQ(refusal_of({{"sliding_window", 8}, {"sliding_window_pattern", 6}}),
            "[config.json] sliding_window_pattern is not supported without layer_types");
  EXPECT_EQ(refusal_of({{"layer_types", {"full_attention"}}}),
            "[config.json] layer_types must be a list of num_hidden_layers 2 words, but is [\"full_attention\"]");
  EXPECT_EQ(refusal_of({{"layer_types", {"full_attention", "chunked_attention"}}}),
            "[config.json] layer_types must be full_attention or sliding_attention, but has \"chunked_attention\"");
  EXPECT_EQ(refusal_of({{"layer_types", {"full_attention", "sliding_attention"}}, {"sliding_window", nullptr}}),
            "[config.json] layer_types has sliding_attention, which wants a sliding_window, but there is none");
  EXPECT_EQ(
      refusal_of({{"model_type", "qwen2"},
                  {"layer_types", {"full_attention", "sliding_attention"}},
                  {"sliding_window", 8},
                  {"use_sliding_window", false}}),
      "[config.json] layer_types has sliding_attention, which wants a sliding_window, but use_sliding_window is off");
}

// transformers computes these layers without the window, other programs with it.
TEST(ModelConfig, RefusesAWindowOfAnArchitectureThatHasNone) {
  for (const char* architecture : {"llama", "gemma"}) {
    auto json = tiny_json();
    json["model_type"] = architecture;
    json["sliding_window"] = 127;
    EXPECT_NE(message_of([&] { read(json); }).find("sliding_window must be null"), std::string::npos) << architecture;
    for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"sliding_window", nullptr},
                                     {"sliding_window", 128},
                                     {"use_sliding_window", false}}) {
      auto changed = json;
      changed[key] = value;
      EXPECT_EQ(read(changed).sliding_window, std::nullopt) << key;
    }
    json["sliding_window"] = nullptr;
    json["layer_types"] = {"full_attention", "sliding_attention"};
    EXPECT_NE(message_of([&] { read(json); }).find("layer_types has sliding_attention"), std::string::npos);
  }
}

TEST(ModelConfig, TakesTheWidthOfHeadsThatAnArchitectureHasWhereAFileIsSilent) {
  auto json = tiny_json();
  for (const auto& [architecture, width] : {std::pair{"llama", 16}, {"mistral", 16}, {"qwen3", 128}, {"gemma", 256}}) {
    json["model_type"] = architecture;
    EXPECT_EQ(read(json).head_dim, width) << architecture;
  }
}

TEST(ModelConfig, RefusesKeysThatItKnowsToChangeResultsAndListsThoseItDoesNotKnow) {
  EXPECT_NE(refusal("is_causal", false).find("[config.json] is_causal asks for "), std::string::npos);
  EXPECT_EQ(refusal("is_causal", true), "");
  EXPECT_NE(refusal("hidden_activation", "gelu").find("hidden_activation asks for "), std::string::npos);
  EXPECT_NE(refusal("rope_scaling", {{"type", "yarn"}, {"factor", 2}, {"llama_4_scaling_beta", 0.1}})
                .find("llama_4_scaling_beta"),
            std::string::npos);
  auto json = tiny_json();
  json["mine"] = 1;
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 2}, {"its", 1}};
  EXPECT_EQ(read(json).unknown_keys, (std::vector<std::string>{"mine", "rope_scaling.its"}));
}

TEST(ModelConfig, LeavesOutEndsBeyondTheVocabularyWithAWarning) {
  auto json = tiny_json();
  json["eos_token_id"] = {2, 48, -1};
  const auto config = read(json);
  EXPECT_EQ(config.eos_token_ids, (std::vector<std::int64_t>{2}));
  ASSERT_EQ(config.warnings.size(), 2U);
  EXPECT_NE(config.warnings[0].find("[config.json] eos_token_id 48 is left out"), std::string::npos);
}

TEST(ModelConfig, NamesTheKeyTheBoundsAndTheValue) {
  EXPECT_EQ(refusal("num_key_value_heads", 3),
            "[config.json] num_key_value_heads must divide num_attention_heads 4, but is 3");
  EXPECT_EQ(refusal("num_attention_heads", 6),
            "[config.json] num_attention_heads must divide hidden_size 64, but is 6");
  EXPECT_EQ(refusal("num_hidden_layers", "30"), "[config.json] num_hidden_layers must be an integer, but is \"30\"");
  EXPECT_EQ(refusal("vocab_size", nullptr),
            "[config.json] wanted vocab_size, an integer of 1 to 16777216, but there is none");
  EXPECT_EQ(refusal("rms_norm_eps", 0), "[config.json] rms_norm_eps must be 1e-12 to 1, but is 0");
  EXPECT_EQ(refusal("torch_dtype", "int8"),
            "[config.json] torch_dtype must be float32, float16 or bfloat16, but is \"int8\"");
}

TEST(ModelConfig, RefusesEveryNumberOutOfBounds) {
  const std::vector<json> bad = {
      0, -1, 1.5, "4", true, json::array(), json::object(), std::uint64_t{1} << 63, std::int64_t{1} << 62};
  for (const auto key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                         "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings"})
    for (const auto& value : bad) {
      const auto message = refusal(key, value);
      EXPECT_TRUE(message.starts_with("[config.json] ") && message.find(key) != std::string::npos)
          << key << " = " << value << ": " << message;
    }
  for (const auto& value : std::vector<json>{1.5, "1", json::array({1, 48})})
    EXPECT_NE(refusal("bos_token_id", value), "") << value;
  for (const auto& value : std::vector<json>{1.5, "1", json::array({1, "2"})})
    EXPECT_NE(refusal("eos_token_id", value), "") << value;
  for (const auto& value : std::vector<json>{0, -1, 1e300, "1e4"}) EXPECT_NE(refusal("rope_theta", value), "") << value;
  for (const auto& value : std::vector<json>{0, 2, -0.5, 0.01, 0.19})
    EXPECT_NE(refusal("partial_rotary_factor", value), "");
  EXPECT_NE(refusal("head_dim", 15).find("rotary dim that is even"), std::string::npos);
  EXPECT_NE(refusal("tie_word_embeddings", 1), "");
  EXPECT_NE(refusal("model_type", nullptr).find("model_type"), std::string::npos);
  EXPECT_NE(refusal("model_type", ""), "");
}

TEST(ModelConfig, RefusesWhatIsNoJsonObject) {
  for (const auto& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"a\": \xff}"), std::string("{\"a\": 1e999}"),
        std::string(100000, '['), "{\"hidden_size\":" + std::string(100000, '[')}) {
    const auto message = message_of([&] { model_config_from_json(text, "config.json", {}); });
    EXPECT_TRUE(message.starts_with("[config.json] ")) << message;
    EXPECT_LT(message.size(), 400U);
  }
}

TEST(ModelConfig, ReadsEveryTruncationWithoutACrash) {
  const auto text = tiny_json().dump();
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_THROW(model_config_from_json(text.substr(0, size), "config.json", {}), UserError);
}

// ---- GGUF ----

TEST(ModelConfig, ReadsAGgufLlama) {
  auto file = testing::tiny_llama_gguf();
  file.u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .u32("tokenizer.ggml.eot_token_id", 7);
  const auto config = read(file);
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 96);
  EXPECT_EQ(config.layer_count, 2);
  EXPECT_EQ(config.head_count, 4);
  EXPECT_EQ(config.kv_head_count, 2);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.vocab_size, 48);
  EXPECT_EQ(config.context_length, 128);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_EQ(config.rope.theta, 10000);
  EXPECT_EQ(config.rope.rotary_dim, 16);
  EXPECT_EQ(config.rope.pairing, RotaryPairing::neighbours);
  EXPECT_EQ(config.rope.frequency_factors, "");
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.dtype, DType::f32);
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.eos_token_ids, (std::vector<std::int64_t>{2, 7}));
}

TEST(ModelConfig, ReadsAGgufFileByTheKeysOfItsArchitecture) {
  for (const std::string architecture : {"qwen3", "gemma"}) {
    GgufBytes file = without("", architecture);
    file.u32(architecture + ".attention.key_length", 32).u32(architecture + ".attention.value_length", 32);
    file.f32(architecture + ".rope.freq_base", 1e6F);
    const auto config = read(file);
    EXPECT_EQ(config.architecture, architecture);
    EXPECT_EQ(config.head_dim, 32);
    EXPECT_EQ(config.rope.rotary_dim, 32);
    EXPECT_EQ(config.rope.theta, 1e6);
    EXPECT_EQ(config.rope.pairing, RotaryPairing::halves);
    EXPECT_EQ(config.hidden_act, architecture == "gemma" ? "gelu_pytorch_tanh" : "silu");
    EXPECT_EQ(message_of([&] { read(file.u32(architecture + ".rope.dimension_count", 34)); }),
              "[model.gguf] " + architecture +
                  ".rope.dimension_count must make a rotary dim that is even and at most the head's 32, but it is 34");
  }
}

TEST(ModelConfig, SeesByItsTensorsWhatAGgufModelHas) {
  auto file = testing::tiny_llama_gguf();
  const std::string data(16, '\0');
  file.tensor("output.weight", {4}, 0, data).tensor("blk.0.attn_q.bias", {4}, 0, data);
  file.tensor("blk.0.ffn_up.bias", {4}, 0, data).tensor("rope_freqs.weight", {4}, 0, data);
  const auto config = read(file);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_TRUE(config.attention_bias);
  EXPECT_TRUE(config.mlp_bias);
  EXPECT_EQ(config.rope.frequency_factors, "rope_freqs.weight");
}

TEST(ModelConfig, CountsTokensWhereAGgufFileHasNoVocabularySize) {
  auto file = without("llama.vocab_size");
  file.texts("tokenizer.ggml.tokens", {"a", "b", "c"});
  EXPECT_EQ(read(file).vocab_size, 3);
  EXPECT_EQ(message_of([] { read(without("llama.vocab_size")); }),
            "[model.gguf] wanted llama.vocab_size or tokenizer.ggml.tokens, but there is neither");
}

TEST(ModelConfig, NamesTheGgufKeyThatIsMissingOrWrong) {
  for (const auto key :
       {"llama.block_count", "llama.context_length", "llama.embedding_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    EXPECT_NE(message_of([&] { read(without(key)); }).find("wanted " + std::string(key)), std::string::npos) << key;
    EXPECT_NE(message_of([&] { read(without(key).text(key, "2")); }).find(key), std::string::npos) << key;
    if (std::string_view(key).ends_with("epsilon")) continue;
    for (const std::uint32_t value : {0U, ~0U})
      if (value == 0 || std::string_view(key) != "llama.context_length") {
        EXPECT_NE(message_of([&] { read(without(key).u32(key, value)); }).find(key), std::string::npos) << key;
      }
  }
  EXPECT_EQ(message_of([] { read(GgufBytes()); }),
            "[model.gguf] wanted the key general.architecture, text, but there is none");
  EXPECT_EQ(message_of([] { read(without("llama.attention.head_count_kv").u32("llama.attention.head_count_kv", 3)); }),
            "[model.gguf] llama.attention.head_count_kv must divide llama.attention.head_count 4, but is 3");
  EXPECT_NE(message_of([] { read(without("").u32("llama.attention.value_length", 32)); }), "");
  EXPECT_NE(message_of([] { read(without("").u32("llama.rope.dimension_count", 7)); }), "");
  EXPECT_NE(message_of([] { read(without("").u32("llama.rope.dimension_count", 18)); }), "");
  EXPECT_NE(message_of([] { read(without("").f32("llama.rope.freq_base", std::numeric_limits<float>::infinity())); }),
            "");
  EXPECT_EQ(read(without("").u32("tokenizer.ggml.bos_token_id", 48)).warnings.size(), 1U);
  EXPECT_EQ(read(without("").u32("tokenizer.ggml.eos_token_id", 48)).warnings.size(), 1U);
}

TEST(ModelConfig, RefusesGgufKeysThatItKnowsToChangeResults) {
  const auto refusal_of = [](GgufBytes file) { return message_of([&] { read(file); }); };
  EXPECT_NE(refusal_of(without("").boolean("llama.attention.causal", false))
                .find("[model.gguf] llama.attention.causal asks for "),
            std::string::npos);
  EXPECT_EQ(refusal_of(without("").boolean("llama.attention.causal", true)), "");
  EXPECT_NE(refusal_of(without("").f32("llama.logit_scale", 0.5F)).find("llama.logit_scale"), std::string::npos);
  EXPECT_EQ(refusal_of(without("").f32("llama.logit_scale", 1)), "");
  EXPECT_EQ(refusal_of(without("").f32("gemma.logit_scale", 0.5F)), "") << "another architecture's";
  EXPECT_EQ(read(without("").u32("llama.mine", 1).u32("tokenizer.ggml.mine", 1)).unknown_keys,
            (std::vector<std::string>{"llama.mine", "tokenizer.ggml.mine"}));
}

// Beside the architecture's and the tokenizer's: what describes the file is known, all else is listed.
TEST(ModelConfig, ListsGgufKeysOfNoKnownPrefix) {
  EXPECT_EQ(read(without("").text("general.author", "me").u32("split.count", 1).u32("adapter.mine", 1)).unknown_keys,
            std::vector<std::string>{"adapter.mine"});
  EXPECT_EQ(message_of([] { read(without("").text("general.type", "model")); }), "");
  EXPECT_NE(message_of([] { read(without("").text("general.type", "adapter")); }).find("general.type asks for"),
            std::string::npos);
}

TEST(ModelConfig, RefusesClassesThatGenerateNoText) {
  for (const char* name : {"LlamaForCausalLM", "Gemma3ForConditionalGeneration"})
    EXPECT_EQ(refusal("architectures", {name}), "") << name;
  for (const char* name : {"LlamaBidirectionalForSequenceClassification", "LlamaForTokenClassification"})
    EXPECT_NE(refusal("architectures", {name}).find(name), std::string::npos) << name;
}

TEST(ModelConfig, ListsKeysOfAQuantizationConfig) {
  auto config = tiny_json();
  config["quantization_config"] = {{"quant_method", "awq"}, {"bits", 4}, {"zero_point", true}, {"mine", 1}};
  EXPECT_EQ(read(config).unknown_keys, std::vector<std::string>{"quantization_config.mine"});
}

}  // namespace weft::model_config_test
