// GLM-4.5, GLM-4.5-Air and their successors, and Solar Open: Llama's layers with biases of queries, keys and values,
// rotary positions of half of each head, and experts in all layers but the first ones. A bias of each expert, which is
// added to its score for the choice alone, balances their use.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

nn::WeightTable glm4_moe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_head_norms(weights);
  nn::add_experts(weights);
  nn::add_expert_bias(weights, "mlp.gate.e_score_correction_bias");
  nn::add_shared_expert(weights, "mlp.shared_experts");
  nn::rename(weights, {{"ffn_norm", "blk.{}.post_attention_norm", ""}});
  return weights;
}

constexpr const char* kGlm4MoeDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "use_qk_norm": false, "partial_rotary_factor": 0.5,
  "n_routed_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1408, "n_shared_experts": 1,
  "first_k_dense_replace": 1
})";

// All layers of Solar Open have experts.
constexpr const char* kSolarOpenDefaults = R"({
  "rope_theta": 1000000.0, "partial_rotary_factor": 1.0, "moe_intermediate_size": 1280, "first_k_dense_replace": 0,
  "intermediate_size": 10240
})";

constexpr const char* kGlm4MoeSample = R"({
  "architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "head_dim": 32, "partial_rotary_factor": 0.5, "attention_bias": true, "use_qk_norm": true,
  "first_k_dense_replace": 1, "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1, "n_routed_experts": 4,
  "n_shared_experts": 1, "norm_topk_prob": true, "num_experts_per_tok": 2, "routed_scaling_factor": 1.5,
  "num_nextn_predict_layers": 0, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(glm4_moe) {
  using namespace weft;
  models.add({.architectures = {"glm4_moe"},
              .aliases = {"solar_open"},
              .gguf_architecture = "glm4moe",
              .facts = {.defaults = kGlm4MoeDefaults,
                        .defaults_of_types = {{"solar_open", kSolarOpenDefaults}},
                        .experts = ExpertFacts{.count = "n_routed_experts",
                                               .shared_count = "n_shared_experts",
                                               .scores = ExpertScores::sigmoid,
                                               .normalizes = true},
                        .switches = {{&ModelConfig::attention_bias, "attention_bias", "", "blk.0.attn_q.bias"},
                                     {&ModelConfig::has_head_norms, "use_qk_norm", "", "blk.0.attn_q_norm.weight"}}},
              .weights = glm4_moe_weights(),
              .forward = nn::llama_forward_with_head_norms,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"attn_quant", 1}},
              .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}},
              .fusions_of_experts = {{"act_quant", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kGlm4MoeSample});
}
