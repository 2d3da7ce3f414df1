// Llama: Llama 2 and 3, SmolLM2, TinyLlama. Pre-norm decoder layers of grouped-query attention with rotary positions
// and a SiLU-gated feed-forward; the residual sum travels beside the hidden state, as vLLM writes it.

#include <cmath>

#include "base/error.h"
#include "models/model.h"
#include "nn/linear.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/index_select.h"
#include "ops/kv_cache_update.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/rotary_embedding.h"
#include "ops/silu_and_mul.h"
#include "ops/slice.h"

namespace weft {
namespace {

Value norm_weight(Builder& b, const std::string& name, int layer = -1) {
  const std::string suffix = layer < 0 ? "" : "." + std::to_string(layer);
  return b.weight(name + suffix, {b.key(name, layer)}, WeightRole::vector);
}

struct Step {
  Value positions;  // i64[s0]
  Value slots;      // i64[s0]
  Value batch;
  Value rotary;  // f32[positions, rotary_dim]
};

// x [s0, d] normalised; gives the layer's new pages and the output projection [s0, d].
std::pair<Value, Value> self_attention(Builder& b, const Step& step, const Value& x, const Value& kv, int layer) {
  const ModelConfig& c = b.facts.config;
  const std::string suffix = "." + std::to_string(layer);
  const std::int64_t query_width = c.head_count * c.head_dim, kv_width = c.kv_head_count * c.head_dim;
  const Dim rows = x.dim(0);
  Value qkv =
      nn::merged_linear(b, x, "qkv" + suffix, {b.key("attn_q", layer), b.key("attn_k", layer), b.key("attn_v", layer)});
  Value query = slice(qkv, -1, 0, query_width);
  Value key = slice(qkv, -1, query_width, query_width + kv_width);
  Value value = slice(qkv, -1, query_width + kv_width, query_width + 2 * kv_width);
  std::tie(query, key) = rotary_embedding(maybe_inplace, step.positions, query, key, step.rotary, c.head_dim,
                                          c.rope.rotary_dim, c.rope.is_neox_style);
  const Shape kv_shape{rows, c.kv_head_count, c.head_dim};
  const Value pages = kv_cache_update(maybe_inplace, reshape(key, kv_shape), reshape(value, kv_shape), kv, step.slots);
  const double scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
  const Value heads = attention(reshape(query, {rows, c.head_count, c.head_dim}), pages, step.batch, scale);
  const Value output =
      nn::linear(b, reshape(heads, {rows, query_width}), "attn_output" + suffix, {b.key("attn_output", layer)});
  return {output, pages};
}

Value feed_forward(Builder& b, const Value& x, int layer) {
  const std::string suffix = "." + std::to_string(layer);
  const Value gate_up = nn::merged_linear(b, x, "gate_up" + suffix, {b.key("ffn_gate", layer), b.key("ffn_up", layer)});
  return nn::linear(b, silu_and_mul(gate_up), "ffn_down" + suffix, {b.key("ffn_down", layer)});
}

Values forward(Builder& b) {
  const ModelConfig& c = b.facts.config;
  const Meta per_token = Meta::tensor(DType::i64, {tokens_symbol()});
  const Value ids = b.input("ids", per_token);
  Step step;
  step.positions = b.input("positions", per_token);
  step.slots = b.input("slots", per_token);
  step.batch = b.input("batch", Meta::batch());
  Values pages;
  for (std::int64_t i = 0; i < c.layer_count; ++i)
    pages.push_back(b.donated_input("kv." + std::to_string(i), Meta::pages(b.facts.kv)));
  step.rotary = b.rotary_table();

  Value x = embedding(ids, b.weight("token_embd", {b.key("token_embd")}, WeightRole::linear), b.facts.dtype);
  Value residual;
  for (int layer = 0; layer < c.layer_count; ++layer) {
    b.enter_layer(layer);
    Value& kv = pages[static_cast<std::size_t>(layer)];
    const Value before_attention = norm_weight(b, "attn_norm", layer);
    if (layer == 0) {
      residual = x;
      x = rms_norm(x, before_attention, c.rms_norm_eps);
    } else {
      std::tie(x, residual) = fused_add_rms_norm(maybe_inplace, x, residual, before_attention, c.rms_norm_eps);
    }
    std::tie(x, kv) = self_attention(b, step, x, kv, layer);
    std::tie(x, residual) =
        fused_add_rms_norm(maybe_inplace, x, residual, norm_weight(b, "ffn_norm", layer), c.rms_norm_eps);
    x = feed_forward(b, x, layer);
  }
  b.enter_layer(-1);
  std::tie(x, residual) = fused_add_rms_norm(maybe_inplace, x, residual, norm_weight(b, "output_norm"), c.rms_norm_eps);
  Values results{x};
  results.insert(results.end(), pages.begin(), pages.end());
  return results;
}

Values head(Builder& b) {
  const Value hidden = b.input("hidden", Meta::tensor(b.facts.dtype, {tokens_symbol(), b.facts.config.hidden_size}));
  const Value rows = b.input("rows", Meta::tensor(DType::i64, {rows_symbol()}));
  const std::string weight = b.has_separate_head ? "output" : "token_embd";
  return {nn::linear(b, index_select(hidden, rows), weight, {b.key(weight)})};
}

void check(const ModelConfig& c) {
  USER_CHECK(!c.attention_bias && !c.mlp_bias,
             "[llama] biases of linear layers are not supported by this architecture");
  USER_CHECK(c.hidden_act == "silu", "[llama] hidden_act must be silu, but is {}", c.hidden_act);
  USER_CHECK(c.expert_count == 0, "[llama] mixtures of experts are not supported, but the model has {} experts",
             c.expert_count);
  USER_CHECK(!c.sliding_window, "[llama] sliding windows are not supported, but the model has one of {}",
             c.sliding_window.value_or(0));
}

using Extents = std::vector<std::int64_t>;

Extents per_hidden(const ModelConfig& c) { return {c.hidden_size}; }
Extents vocabulary_rows(const ModelConfig& c) { return {c.vocab_size, c.hidden_size}; }
Extents head_rows(const ModelConfig& c) { return c.tie_word_embeddings ? Extents{} : vocabulary_rows(c); }
Extents query_rows(const ModelConfig& c) { return {c.head_count * c.head_dim, c.hidden_size}; }
Extents key_value_rows(const ModelConfig& c) { return {c.kv_head_count * c.head_dim, c.hidden_size}; }
Extents attention_output_rows(const ModelConfig& c) { return {c.hidden_size, c.head_count * c.head_dim}; }
Extents feed_forward_rows(const ModelConfig& c) { return {c.intermediate_size, c.hidden_size}; }
Extents feed_forward_output_rows(const ModelConfig& c) { return {c.hidden_size, c.intermediate_size}; }

std::int64_t query_heads(const ModelConfig& c) { return c.head_count; }
std::int64_t key_heads(const ModelConfig& c) { return c.kv_head_count; }

constexpr const char* kSampleConfig = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
  "vocab_size": 257, "eos_token_id": 256
})";

}  // namespace
}  // namespace weft

MODEL(llama) {
  using namespace weft;
  models.add(
      {.architectures = {"llama"},
       .weights =
           {{"token_embd", "token_embd.weight", "model.embed_tokens.weight", vocabulary_rows},
            {"attn_norm", "blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight", per_hidden},
            {"attn_q", "blk.{}.attn_q.weight", "model.layers.{}.self_attn.q_proj.weight", query_rows, query_heads},
            {"attn_k", "blk.{}.attn_k.weight", "model.layers.{}.self_attn.k_proj.weight", key_value_rows, key_heads},
            {"attn_v", "blk.{}.attn_v.weight", "model.layers.{}.self_attn.v_proj.weight", key_value_rows},
            {"attn_output", "blk.{}.attn_output.weight", "model.layers.{}.self_attn.o_proj.weight",
             attention_output_rows},
            {"ffn_norm", "blk.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight", per_hidden},
            {"ffn_gate", "blk.{}.ffn_gate.weight", "model.layers.{}.mlp.gate_proj.weight", feed_forward_rows},
            {"ffn_up", "blk.{}.ffn_up.weight", "model.layers.{}.mlp.up_proj.weight", feed_forward_rows},
            {"ffn_down", "blk.{}.ffn_down.weight", "model.layers.{}.mlp.down_proj.weight", feed_forward_output_rows},
            {"output_norm", "output_norm.weight", "model.norm.weight", per_hidden},
            {"output", "output.weight", "lm_head.weight", head_rows}},
       .forward = forward,
       .head = head,
       .fusions_per_layer = {{"rms_quant", 2}, {"act_quant", 1}, {"attn_quant", 1}},
       .check = check,
       .sample_config = kSampleConfig});
}
