// dots.llm1: Qwen 3's attention, and DeepSeek V3's mixture of experts in all layers but the first ones.

#include "models/bias_switches.h"
#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

nn::WeightTable dots1_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_head_norms(weights);
  nn::add_experts(weights);
  nn::add_expert_bias(weights, "mlp.gate.e_score_correction_bias");
  nn::add_shared_expert(weights, "mlp.shared_experts");
  return weights;
}

constexpr const char* kDots1Sample = R"({
  "architectures": ["Dots1ForCausalLM"], "model_type": "dots1", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 32, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
  "tie_word_embeddings": false, "attention_bias": false, "sliding_window": null, "max_window_layers": 2,
  "first_k_dense_replace": 1, "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1, "n_routed_experts": 4,
  "n_shared_experts": 2, "norm_topk_prob": true, "num_experts_per_tok": 2, "routed_scaling_factor": 2.5,
  "scoring_func": "noaux_tc", "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(dots1) {
  using namespace weft;
  models.add({.architectures = {"dots1"},
              .facts = {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 2048, "sliding_window": 4096,
                                 "max_window_layers": 62})",
                        .window = WindowFacts{.first_layer = 62, .has_switch = false},
                        .experts = ExpertFacts{.count = "n_routed_experts",
                                               .shared_count = "n_shared_experts",
                                               .scores = ExpertScores::sigmoid},
                        .switches = attention_biases()},
              .weights = dots1_weights(),
              .forward = nn::llama_forward_with_head_norms,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 1}, {"act_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
              .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
              .fusions_of_experts = {{"act_quant", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kDots1Sample});
}
