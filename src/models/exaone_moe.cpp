// K-EXAONE: Llama's layers with norms of the heads of queries and keys, and DeepSeek V3's mixture of experts in all
// layers but the first ones. Layers without a window have no rotary positions.

#include "models/llama_layers.h"

namespace weft {
namespace {

nn::WeightTable exaone_moe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_head_norms(weights);
  nn::add_experts(weights);
  nn::add_expert_bias(weights, "mlp.e_score_correction_bias");
  nn::add_shared_expert(weights, "mlp.shared_experts");
  return weights;
}

constexpr const char* kExaoneMoeDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 2048, "sliding_window": 4096, "first_k_dense_replace": 1,
  "moe_intermediate_size": 1024, "num_experts": 64, "num_experts_per_tok": 8, "num_shared_experts": 1,
  "routed_scaling_factor": 2.5
})";

constexpr const char* kExaoneMoeSample = R"("head_dim": 32, "sliding_window": 9, "sliding_window_pattern": "LG",
  "first_k_dense_replace": 1, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2,
  "num_shared_experts": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "n_group": 1, "topk_group": 1)";

}  // namespace
}  // namespace weft

MODEL(exaone_moe) {
  using namespace weft;
  ModelDefinition model = llama_layers(
      "exaone_moe",
      {.defaults = kExaoneMoeDefaults,
       .window = WindowFacts{.period = 4},
       .rotary = {.only_rotates_windows = true},
       .experts =
           ExpertFacts{.shared_count = "num_shared_experts", .scores = ExpertScores::sigmoid, .normalizes = true}},
      llama_sample("ExaoneMoeForCausalLM", "exaone_moe", kExaoneMoeSample), exaone_moe_weights());
  model.gguf_architecture = "exaone-moe";
  model.forward = nn::llama_forward_with_head_norms;
  model.fusions_per_layer = {{"rms_quant", 1}, {"act_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}};
  model.fusions_per_mixture = {{"rms_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}};
  model.fusions_of_experts = {{"act_quant", 1}};
  models.add(std::move(model));
}
