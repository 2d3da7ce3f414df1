// StableLM 2: Llama's layers with norms that subtract the mean. A part of each head is rotated. In the larger model
// both halves of a layer take the same norm, and query and key have a norm for each head, with a weight for each.

#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_weights.h"
#include "nn/feed_forward.h"
#include "nn/llama.h"
#include "nn/norm.h"
#include "ops/layer_norm.h"
#include "ops/mul.h"
#include "ops/reshape.h"

namespace weft {
namespace {

using Extents = std::vector<std::int64_t>;

Extents query_heads(const ModelConfig& c, int) {
  return c.has_head_norms ? Extents{c.head_count, c.head_dim} : Extents();
}
Extents key_heads(const ModelConfig& c, int) {
  return c.has_head_norms ? Extents{c.kv_head_count, c.head_dim} : Extents();
}

std::vector<ModelWeight> stablelm_weights() {
  std::vector<ModelWeight> weights = nn::decoder_weights();
  weights.push_back({"attn_q_norm", "blk.{}.attn_q_norm.weight",
                     "model.layers.{}.self_attn.q_layernorm.norms.{}.weight", query_heads});
  weights.push_back(
      {"attn_k_norm", "blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_layernorm.norms.{}.weight", key_heads});
  return weights;
}

// x [s0, heads * head_dim] with a norm of each head, whose weights are [heads, head_dim].
Value norm_of_each_head(Builder& b, const Value& x, const std::string& name, int layer) {
  const std::int64_t width = b.facts.config.head_dim;
  const Value heads = reshape(x, {x.dim(0), x.dim(1).number() / width, width});
  const Value scaled = mul(layer_norm(heads, {}, {}, b.facts.config.norm_eps), nn::norm_weight(b, name, layer));
  return reshape(scaled, {x.dim(0), x.dim(1)});
}

Value stablelm_attention(Builder& b, nn::DecoderStep& step, const Value& x, int layer) {
  nn::QueryKeyValue heads = nn::query_key_value(b, x, layer);
  if (b.facts.config.has_head_norms) {
    heads.query = norm_of_each_head(b, heads.query, "attn_q_norm", layer);
    heads.key = norm_of_each_head(b, heads.key, "attn_k_norm", layer);
  }
  return nn::attend(b, step, std::move(heads), layer);
}

Values stablelm_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) { return stablelm_attention(b, step, x, layer); };
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
