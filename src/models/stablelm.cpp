// StableLM 2: Llama's layers with norms that subtract the mean. A part of each head is rotated. In the larger model
// both halves of a layer take the same norm, and query and key have a norm for each head, with a weight for each.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"

namespace weft {
namespace {

std::vector<ModelWeight> stablelm_weights() {
  std::vector<ModelWeight> weights = nn::decoder_weights();
  nn::add_own_head_norms(weights);
  nn::rename(weights, {{"attn_q_norm", "", "model.layers.{}.self_attn.q_layernorm.norms.{}"},
                       {"attn_k_norm", "", "model.layers.{}.self_attn.k_layernorm.norms.{}"}});
  return weights;
}

Values stablelm_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    return nn::self_attention_with_own_head_norms(b, step, x, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) { return nn::gated_feed_forward(b, x, layer); };
  const auto layers = b.facts.config.is_parallel ? nn::parallel_layers : nn::pre_norm_layers;
  return layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

constexpr const char* kStableLmSample = R"({
  "architectures": ["StableLmForCausalLM"], "model_type": "stablelm", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "layer_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "use_qkv_bias": true, "use_parallel_residual": false, "partial_rotary_factor": 0.25, "qk_layernorm": true,
  "vocab_size": 257,
  "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(stablelm) {
  using namespace weft;
  models.add(
      {.architectures = {"stablelm"},
       .facts =
           {.defaults =
                R"({"layer_norm_eps": 1e-5, "max_position_embeddings": 4096, "partial_rotary_factor": 0.25, "qk_layernorm": false})",
            .norm = {.kind = NormKind::layer, .epsilon = "layer_norm_eps", .has_bias = true},
            .switches = {{&ModelConfig::attention_bias, "use_qkv_bias", "", "blk.0.attn_q.bias"},
                         {&ModelConfig::is_parallel, "use_parallel_residual", "use_parallel_residual"},
                         {&ModelConfig::has_head_norms, "qk_layernorm", "", "blk.0.attn_q_norm.weight"}},
            // The name of partial_rotary_factor in an earlier class; transformers passes over it, too.
            .keys = {"rope_pct"}},
       .weights = stablelm_weights(),
       .forward = stablelm_forward,
       .head = nn::decoder_head,
       .fusions_per_layer = {{"act_quant", 1}, {"attn_quant", 1}, {"rope_kvcache", 1}},
       .check = nn::check_gated_decoder,
       .sample_config = kStableLmSample});
}
