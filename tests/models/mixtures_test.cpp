// What files of families with experts may not ask for, and what GGUF files leave to the architecture.

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::mixtures_test {

using nlohmann::json;

ModelDefinition model_of(const std::string& architecture) { return make_model_registry().find(architecture, "test"); }

// The message about the sample config with changes; "" if it is accepted.
std::string refusal(const std::string& architecture, const json& changes) {
  const ModelDefinition model = model_of(architecture);
  return message_of([&] { model.check(SampleCheckpoint(model, changes).config()); });
}

void expect_refusal(const std::string& architecture, const json& changes, const std::string& part) {
  const std::string message = refusal(architecture, changes);
  EXPECT_NE(message.find(part), std::string::npos) << architecture << ": " << message;
}

ModelConfig config_in_gguf(const std::string& architecture, const json& changes = json::object()) {
  const ModelDefinition model = model_of(architecture);
  const TemporaryFolder temporary;
  return Checkpoint::open(SampleCheckpoint(model, changes).write_gguf(temporary, "m.gguf", DType::f32))
      .config(model.facts);
}

TEST(Mixtures, MiniMaxM2RefusesOtherAttentionAndOtherNorms) {
  expect_refusal("minimax_m2", {{"attn_type_list", {1, 0}}}, "attn_type_list asks for layers of linear attention");
  EXPECT_EQ(refusal("minimax_m2", {{"attn_type_list", {1, 1}}}), "");
  expect_refusal("minimax_m2", {{"qk_norm_type", "per_head"}}, "qk_norm_type asks for");
  expect_refusal("minimax_m2", {{"use_routing_bias", false}}, "use_routing_bias must be true");
  expect_refusal("minimax_m2", {{"shared_intermediate_size", 32}}, "shared_intermediate_size asks for");
  expect_refusal("minimax_m2", {{"scoring_func", "softmax"}}, "scoring_func must be sigmoid");
}

TEST(Mixtures, MiniMaxM2HasAWidthOfTheRotatedPart) {
  const ModelDefinition model = model_of("minimax_m2");
  EXPECT_EQ(SampleCheckpoint(model).config().rope.rotary_dim, 16);
  EXPECT_EQ(SampleCheckpoint(model, {{"partial_rotary_factor", 0.25}}).config().rope.rotary_dim, 8);
  expect_refusal("qwen3_moe", {{"rotary_dim", 16}}, "rotary_dim asks for");
}

TEST(Mixtures, Ernie45RefusesBiases) {
  expect_refusal("ernie4_5_moe", {{"use_bias", true}}, "use_bias asks for biases");
  expect_refusal("ernie4_5_moe", {{"moe_norm_min", 1e-3}}, "moe_norm_min asks for");
}

TEST(Mixtures, Granite4HasLayersOfMambaByEitherWord) {
  const ModelDefinition model = model_of("granitemoehybrid");
  for (const json& words :
       {json{"mamba", "mamba", "attention"}, json{"linear_attention", "linear_attention", "full_attention"}}) {
    const ModelConfig config = SampleCheckpoint(model, {{"layer_types", words}}).config();
    EXPECT_TRUE(config.recurs(1));
    EXPECT_FALSE(config.attends(1));
    EXPECT_TRUE(config.attends(2));
  }
  expect_refusal("granitemoehybrid", {{"layer_types", {"mamba", "mamba", "conv"}}},
                 "layer_types must be full_attention, attention or mamba or linear_attention, but has \"conv\"");
  expect_refusal("granitemoe", {{"layer_types", {"attention", "mamba"}}},
                 "has \"mamba\": layers of Mamba, and others without attention, are not supported");
}

TEST(Mixtures, Granite4HasNoPositionsUnlessItAsksForThem) {
  const ModelDefinition model = model_of("granitemoehybrid");
  const auto is_rotated = [&](const json& kind) {
    return SampleCheckpoint(model, {{"position_embedding_type", kind}}).config().rope_of(0) != nullptr;
  };
  EXPECT_TRUE(is_rotated("rope"));
  EXPECT_FALSE(is_rotated("nope"));
  EXPECT_FALSE(is_rotated(nullptr));
  EXPECT_NE(config_in_gguf("granitemoehybrid").rope_of(0), nullptr);
  EXPECT_EQ(config_in_gguf("granitemoehybrid", {{"position_embedding_type", "nope"}}).rope_of(0), nullptr);
  expect_refusal("granitemoehybrid", {{"position_embedding_type", "alibi"}}, "must be rope or nope, but is \"alibi\"");
}

TEST(Mixtures, Llama4LimitsTheContextToOneChunk) {
  const ModelDefinition model = model_of("llama4_text");
  const auto config = [&](const json& changes) { return SampleCheckpoint(model, changes).config(); };
  EXPECT_EQ(config(json::object()).context_length, 128);
  EXPECT_TRUE(config(json::object()).warnings.empty());
  const ModelConfig limited = config({{"attention_chunk_size", 64}});
  EXPECT_EQ(limited.context_length, 64);
  ASSERT_EQ(limited.warnings.size(), 1U);
  EXPECT_NE(limited.warnings[0].find("chunks of 64 tokens"), std::string::npos) << limited.warnings[0];
  EXPECT_EQ(config({{"attention_chunk_size", nullptr}}).context_length, 128);
  expect_refusal("llama4_text", {{"num_experts_per_tok", 2}}, "num_experts_per_tok must be 1, but is 2");
  EXPECT_TRUE(config({{"attn_temperature_tuning", 4}}).scales_unrotated_queries) << "as in the first files";
  EXPECT_FALSE(config({{"attn_temperature_tuning", 0}}).scales_unrotated_queries);
  expect_refusal("llama4_text", {{"floor_scale", 0}}, "floor_scale must be above 0");
}

TEST(Mixtures, Llama4LeavesItsScalesOutOfGgufFiles) {
  const ModelConfig config = config_in_gguf("llama4_text");
  EXPECT_EQ(config.attention_chunk, 8192);
  EXPECT_EQ(config.unrotated_query_length, 8192);
  EXPECT_EQ(config.unrotated_query_scale, 0.1);
  EXPECT_TRUE(config.has_head_norms);
  EXPECT_EQ(config.experts->shared_width, 32);
  EXPECT_FALSE(config_in_gguf("llama4_text", {{"num_local_experts", 128}, {"use_qk_norm", false}}).has_head_norms)
      << "as in llama.cpp";
}

TEST(Mixtures, PhiMoeRefusesAnotherNumberOfExperts) {
  expect_refusal("phimoe", {{"num_experts_per_tok", 3}}, "num_experts_per_tok must be 2, but is 3");
  expect_refusal("phimoe", {{"router_jitter_noise", -1}}, "router_jitter_noise must be at least 0");
  expect_refusal("phi3", {{"rope_scaling", {{"type", "longrope"}, {"short_mscale", 1.2}}}}, "short_mscale asks for");
}

TEST(Mixtures, HunyuanRefusesSeveralSharedExperts) {
  expect_refusal("hunyuan_v1_moe", {{"num_shared_expert", {2, 2}}}, "num_shared_expert asks for");
  expect_refusal("hunyuan_v1_moe", {{"moe_topk", {1, 2}}}, "moe_topk must be one number for all layers");
  expect_refusal("hunyuan_v1_moe", {{"use_cla", true}}, "use_cla asks for");
}

TEST(Mixtures, Dots1HasTheWindowInItsLastLayers) {
  const ModelDefinition model = model_of("dots1");
  const ModelConfig config = SampleCheckpoint(model, {{"sliding_window", 9}, {"max_window_layers", 1}}).config();
  EXPECT_FALSE(config.slides(0));
  EXPECT_TRUE(config.slides(1));
}

}  // namespace weft::mixtures_test
