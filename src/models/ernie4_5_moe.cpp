// Ernie 4.5 with a mixture of experts: the layers of the dense model (ernie4_5.cpp), and experts in all layers but the
// first ones, or in every n-th layer. A bias of each expert, which is added to its probability for the choice alone,
// balances their use.

#include "models/model.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/llama.h"

namespace weft {
namespace {

nn::WeightTable ernie4_5_moe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_experts(weights);
  nn::add_expert_bias(weights, "mlp.moe_statics.e_score_correction_bias", ExpertScores::softmax);
  nn::add_shared_expert(weights, "mlp.shared_experts");
  return weights;
}

constexpr const char* kErnieMoeSample = R"({
  "architectures": ["Ernie4_5_MoeForCausalLM"], "model_type": "ernie4_5_moe", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false,
  "head_dim": 32, "use_bias": false, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 32,
  "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 2,
  "moe_norm_min": 1e-12, "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(ernie4_5_moe) {
  using namespace weft;
  models.add(
      {.architectures = {"ernie4_5_moe"},
       .gguf_architecture = "ernie4_5-moe",
       .facts = {.defaults = R"({"rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "tie_word_embeddings": true,
                                 "rope_theta": 500000.0, "moe_num_experts": 64, "moe_k": 6,
                                 "moe_intermediate_size": 1536, "moe_num_shared_experts": 2,
                                 "moe_layer_start_index": 1})",
                 .pairing_in_folders = RotaryPairing::neighbours,
                 .pairing_in_gguf = RotaryPairing::neighbours,
                 .experts = ExpertFacts{.count = "moe_num_experts",
                                        .shared_count = "moe_num_shared_experts",
                                        .normalizes = true,
                                        .used = "moe_k",
                                        .first = "moe_layer_start_index",
                                        .last = "moe_layer_end_index",
                                        .step = "moe_layer_interval"},
                 .always = {"use_rmsnorm"}},
       .weights = ernie4_5_moe_weights(),
       .forward = nn::llama_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .fusions_of_experts = {{"act_quant", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kErnieMoeSample});
}
