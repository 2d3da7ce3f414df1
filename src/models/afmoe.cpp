// AFMoE (Trinity): Llama's layers with norms after each half, too, norms of the heads of queries and keys, and gates of
// attention's result. All layers but the first ones have experts. Layers without a window have no rotary positions.

#include <cmath>

#include "models/llama_layers.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"

namespace weft {
namespace {

Values afmoe_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention_with_projected_gate(b, step, x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  return nn::sandwich_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

std::vector<std::int64_t> gate_rows(const ModelConfig& c, int layer) {
  return {c.head_count * c.head_dim_of(layer), c.hidden_size};
}

nn::WeightTable afmoe_weights() {
  nn::WeightTable weights = nn::decoder_weights();
  nn::add_head_norms(weights);
  nn::add_post_norms(weights);
  nn::add_experts(weights);
  nn::add_expert_bias(weights, "mlp.expert_bias");
  nn::add_shared_expert(weights, "mlp.shared_experts");
  nn::rename(weights, {{"ffn_norm", "", "model.layers.{}.pre_mlp_layernorm"},
                       {"post_ffw_norm", "", "model.layers.{}.post_mlp_layernorm"},
                       {"ffn_gate_inp", "", "model.layers.{}.mlp.router.gate"}});
  weights.push_back({"attn_gate", "blk.{}.attn_gate.weight", "model.layers.{}.self_attn.gate_proj.weight", gate_rows});
  return weights;
}

// GGUF files do not state the factor of the embeddings, which all of their models have.
void complete_afmoe(ModelConfig& c) {
  if (c.format == CheckpointFormat::gguf) c.scales_embedding_by_width = true;
  if (c.scales_embedding_by_width) c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
}

constexpr const char* kAfmoeDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 16384, "head_dim": 128, "sliding_window": 1024, "num_experts": 64,
  "num_experts_per_tok": 6, "num_shared_experts": 2, "num_dense_layers": 1, "moe_intermediate_size": 1408
})";

constexpr const char* kAfmoeSample = R"("head_dim": 32, "sliding_window": 9, "global_attn_every_n_layers": 2,
  "num_dense_layers": 1, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2,
  "num_shared_experts": 1, "route_norm": true, "route_scale": 2.5, "mup_enabled": true)";

}  // namespace
}  // namespace weft

MODEL(afmoe) {
  using namespace weft;
  ModelDefinition model =
      llama_layers("afmoe",
                   {.key_names = {{"global_attn_every_n_layers", "sliding_window_pattern"},
                                  {"route_scale", "routed_scaling_factor"},
                                  {"route_norm", "norm_topk_prob"},
                                  {"score_func", "scoring_func"}},
                    .defaults = kAfmoeDefaults,
                    .window = WindowFacts{.period = 4},
                    .rotary = {.only_rotates_windows = true},
                    .experts = ExpertFacts{.shared_count = "num_shared_experts",
                                           .scores = ExpertScores::sigmoid,
                                           .normalizes = true,
                                           .first = "num_dense_layers"},
                    .switches = {{&ModelConfig::scales_embedding_by_width, "mup_enabled"}},
                    // Of balancing experts in training, and of experts in groups, which no model has.
                    .keys = {"load_balance_coeff", "use_grouped_mm", "num_expert_groups", "num_limited_groups"},
                    .complete = complete_afmoe},
                   llama_sample("AfmoeForCausalLM", "afmoe", kAfmoeSample), afmoe_weights());
  model.forward = afmoe_forward;
  model.fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"qk_norm_rope_kvcache", 1}};
  model.fusions_per_mixture = {{"rms_quant", 1}, {"qk_norm_rope_kvcache", 1}};
  model.fusions_of_experts = {{"act_quant", 1}};
  models.add(std::move(model));
}
