// Ling and Ring of two generations (Bailing MoE): Llama's layers with one weight for queries, keys and values, and
// experts in all layers but the first ones. The second generation has norms of heads, rotates a part of each, and
// chooses experts as DeepSeek V3 does.

#include "models/llama_layers.h"

namespace weft {
namespace {

// One expert of a token has the weight that it is chosen by.
void complete_experts_of_ling(ModelConfig& c) {
  if (c.experts && c.experts->used == 1) c.experts->normalizes = false;
}

void complete_bailing_moe(ModelConfig& c) {
  c.merges_query_key_value = c.format == CheckpointFormat::hugging_face;
  complete_experts_of_ling(c);
}

void complete_bailing_moe_v2(ModelConfig& c) {
  c.merges_query_key_value = true;
  complete_experts_of_ling(c);
}

nn::WeightTable bailing_moe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  const std::string attention = "model.layers.{}.attention.";
  nn::add_experts(weights);
  nn::add_shared_expert(weights, "mlp.shared_experts");
  nn::rename(weights, {{"token_embd", "", "model.word_embeddings"},
                       {"attn_qkv", "", attention + "query_key_value"},
                       {"attn_output", "", attention + "dense"}});
  return weights;
}

nn::WeightTable bailing_moe_v2_weights() {
  nn::WeightTable weights = bailing_moe_weights();
  nn::add_head_norms(weights);
  nn::add_expert_bias(weights, "mlp.gate.expert_bias");
  nn::rename(weights, {{"attn_q_norm", "", "model.layers.{}.attention.query_layernorm"},
                       {"attn_k_norm", "", "model.layers.{}.attention.key_layernorm"}});
  return weights;
}

ModelDefinition with_mixtures(ModelDefinition model, const char* rotation) {
  model.fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {rotation, 1}};
  model.fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {rotation, 1}};
  model.fusions_of_experts = {{"act_quant", 1}};
  return model;
}

constexpr const char* kBailingMoeDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 16384, "num_experts": 16, "num_experts_per_tok": 2,
  "num_shared_experts": 0, "norm_topk_prob": true, "first_k_dense_replace": 0, "use_bias": true
})";

constexpr const char* kBailingMoeV2Defaults = R"({
  "rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "rope_theta": 600000.0, "partial_rotary_factor": 0.5,
  "num_experts": 256, "num_experts_per_tok": 8, "num_shared_experts": 1, "n_group": 8, "topk_group": 4,
  "moe_intermediate_size": 512, "first_k_dense_replace": 1, "head_dim": 128
})";

constexpr const char* kBailingMoeSample = R"("head_dim": 32, "first_k_dense_replace": 1, "moe_intermediate_size": 32,
  "num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 2, "norm_topk_prob": true, "use_bias": false)";

constexpr const char* kBailingMoeV2Sample = R"("head_dim": 32, "first_k_dense_replace": 1, "moe_intermediate_size": 32,
  "num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 1, "n_group": 1, "topk_group": 1,
  "partial_rotary_factor": 0.5, "routed_scaling_factor": 2.5, "use_bias": false)";

}  // namespace
}  // namespace weft

MODEL(bailing_moe) {
  using namespace weft;
  ModelDefinition first =
      llama_layers("bailing_moe",
                   {.embedding = "model.word_embeddings.weight",
                    .defaults = kBailingMoeDefaults,
                    .pairing_in_gguf = RotaryPairing::neighbours,
                    .experts = ExpertFacts{.shared_count = "num_shared_experts"},
                    .switches = {{&ModelConfig::attention_bias, "use_qkv_bias", "", "blk.0.attn_q.bias"},
                                 {&ModelConfig::attention_output_bias, "use_bias", "", "blk.0.attn_output.bias"},
                                 {&ModelConfig::normalizes_head_columns, "norm_head"}},
                    .complete = complete_bailing_moe},
                   llama_sample("BailingMoeForCausalLM", "bailing_moe", kBailingMoeSample), bailing_moe_weights());
  first.gguf_architecture = "bailingmoe";
  models.add(with_mixtures(std::move(first), "rope_kvcache"));
  ModelDefinition second = llama_layers(
      "bailing_moe_v2",
      {.key_names = {{"score_function", "scoring_func"}},
       .embedding = "model.word_embeddings.weight",
       .defaults = kBailingMoeV2Defaults,
       .experts =
           ExpertFacts{.shared_count = "num_shared_experts", .scores = ExpertScores::sigmoid, .normalizes = true},
       .switches = attention_biases("use_qkv_bias", "use_bias"),
       .keys = {"rotary_dim", "moe_shared_expert_intermediate_size"},  // they repeat what other keys state
       .always = {"use_qk_norm", "moe_router_enable_expert_bias", "use_rmsnorm"},
       .complete = complete_bailing_moe_v2},
      llama_sample("BailingMoeV2ForCausalLM", "bailing_moe", kBailingMoeV2Sample), bailing_moe_v2_weights());
  second.class_aliases = {{"bailing_moe", "BailingMoeV2For"}};
  second.gguf_architecture = "bailingmoe2";
  second.forward = nn::llama_forward_with_head_norms;
  second = with_mixtures(std::move(second), "qk_norm_rope_kvcache");
  models.add(std::move(second));
}
