// MiniMax-M2: Llama's layers with experts in all of them. Queries and keys are normalized over all their heads, a part
// of each head is rotated, and a bias of each expert, which is added to its score for the choice alone, balances their
// use.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

Values minimax_m2_forward(Builder& b) { return nn::llama_forward_with(b, nn::self_attention_with_row_norms); }

nn::WeightTable minimax_m2_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_row_norms(weights);
  nn::add_experts(weights, {.module = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"});
  nn::add_expert_bias(weights, "block_sparse_moe.e_score_correction_bias");
  return weights;
}

constexpr const char* kMiniMaxM2Sample = R"({
  "architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 32, "rotary_dim": 16, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 5000000.0,
  "tie_word_embeddings": false, "use_qk_norm": true, "qk_norm_type": "per_layer", "scoring_func": "sigmoid",
  "use_routing_bias": true, "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(minimax_m2) {
  using namespace weft;
  models.add({.architectures = {"minimax_m2"},
              .gguf_architecture = "minimax-m2",
              .facts = {.defaults = R"({"rms_norm_eps": 1e-6, "max_position_embeddings": 196608, "head_dim": 128,
                                        "num_local_experts": 256, "num_experts_per_tok": 8, "rope_theta": 5000000.0})",
                        .rotary = {.width = "rotary_dim"},
                        .experts = ExpertFacts{.count = "num_local_experts",
                                               .width = "intermediate_size",
                                               .scores = ExpertScores::sigmoid,
                                               .normalizes = true},
                        .keys = {"router_jitter_noise"},
                        .always = {"use_qk_norm", "use_routing_bias"}},
              .weights = minimax_m2_weights(),
              .forward = minimax_m2_forward,
              .head = nn::decoder_head,
              .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
              .fusions_of_experts = {{"act_quant", 1}},
              .check = nn::check_gated_decoder,
              .sample_config = kMiniMaxM2Sample});
}
