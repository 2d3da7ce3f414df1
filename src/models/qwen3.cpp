// Qwen 3, dense. It has Llama's layers with two differences: each head of query and key is normalized before its
// rotation, and the width of heads is configured separately.

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/feed_forward.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/silu_and_mul.h"

namespace weft {
namespace {

// Normalizes each head by its own root mean square: x [s0, heads * head_dim] -> the same shape.
Value normalized_heads(Builder& b, const Value& x, const std::string& weight, int layer) {
  const ModelConfig& c = b.facts.config;
  const Dim rows = x.dim(0);
  const std::int64_t width = x.dim(1).number();
  const Value heads = reshape(x, {rows, width / c.head_dim, c.head_dim});
  return reshape(rms_norm(heads, nn::norm_weight(b, weight, layer), c.rms_norm_eps), {rows, width});
}

Values qwen3_forward(Builder& b) {
  nn::DecoderStep step = nn::decoder_step(b);
  const auto attention = [&](const Value& x, int layer) {
    nn::QueryKeyValue heads = nn::query_key_value(b, x, layer);
    heads.query = normalized_heads(b, heads.query, "attn_q_norm", layer);
    heads.key = normalized_heads(b, heads.key, "attn_k_norm", layer);
    return nn::attend(b, step, heads, layer);
  };
  const auto feed_forward = [&](const Value& x, int layer) {
    return nn::gated_feed_forward(b, x, silu_and_mul, layer);
  };
  return nn::pre_norm_layers(b, step, nn::embedded_tokens(b, step.ids), attention, feed_forward);
}

void check_qwen3(const ModelConfig& c) {
  nn::check_decoder(c);
  USER_CHECK(c.hidden_act == "silu", "[qwen3] hidden_act must be silu, but is {}", quote(c.hidden_act));
}

std::vector<std::int64_t> per_head_dim(const ModelConfig& c) { return {c.head_dim}; }

std::vector<ModelWeight> qwen3_weights() {
  std::vector<ModelWeight> weights = nn::decoder_weights();
  weights.push_back(
      {"attn_q_norm", "blk.{}.attn_q_norm.weight", "model.layers.{}.self_attn.q_norm.weight", per_head_dim});
  weights.push_back(
      {"attn_k_norm", "blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_norm.weight", per_head_dim});
  return weights;
}

constexpr const char* kQwen3Sample = R"({
  "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 32, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
  "tie_word_embeddings": false, "attention_bias": false, "use_sliding_window": false, "sliding_window": null,
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(qwen3) {
  using namespace weft;
  models.add({.architectures = {"qwen3"},
              .facts = {.head_dim = 128, .window = WindowFacts{.length = 4096, .first_layer = 28}},
              .weights = qwen3_weights(),
              .forward = qwen3_forward,
              .head = nn::decoder_head,
              .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}, {"qk_norm_rope_kvcache", 1}},
              .check = check_qwen3,
              .sample_config = kQwen3Sample});
}
