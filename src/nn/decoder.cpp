#include "nn/decoder.h"

#include <tuple>

#include "base/error.h"
#include "nn/linear.h"
#include "ops/embedding.h"
#include "ops/fused_add_rms_norm.h"
#include "ops/index_select.h"
#include "ops/rms_norm.h"

namespace weft::nn {
namespace {

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

}  // namespace

DecoderStep decoder_step(Builder& builder) {
  const Meta per_token = Meta::tensor(DType::i64, {tokens_symbol()});
  DecoderStep step;
  step.ids = builder.input("ids", per_token);
  step.positions = builder.input("positions", per_token);
  step.slots = builder.input("slots", per_token);
  step.batch = builder.input("batch", Meta::batch());
  for (std::int64_t i = 0; i < builder.facts.config.layer_count; ++i)
    step.pages.push_back(builder.donated_input("kv." + std::to_string(i), Meta::pages(builder.facts.kv)));
  step.rotary = builder.rotary_table();
  return step;
}

Value embedded_tokens(Builder& builder, const Value& ids) {
  return embedding(ids, builder.weight("token_embd", {builder.key("token_embd")}, WeightRole::linear),
                   builder.facts.dtype);
}

Value norm_weight(Builder& builder, const std::string& name, int layer) {
  const std::string suffix = layer < 0 ? "" : "." + std::to_string(layer);
  return builder.weight(name + suffix, {builder.key(name, layer)}, builder.vector_role(name));
}

Values pre_norm_layers(Builder& builder, DecoderStep& step, Value x, const LayerHalf& attention,
                       const LayerHalf& feed_forward) {
  const double epsilon = builder.facts.config.rms_norm_eps;
  Value residual;
  const auto normalize = [&](const Value& weight) {
    std::tie(x, residual) = fused_add_rms_norm(maybe_inplace, x, residual, weight, epsilon);
  };
  for (int layer = 0; layer < builder.facts.config.layer_count; ++layer) {
    builder.enter_layer(layer);
    const Value before_attention = norm_weight(builder, "attn_norm", layer);
    if (layer == 0) {
      residual = x;
      x = rms_norm(x, before_attention, epsilon);
    } else {
      normalize(before_attention);
    }
    x = attention(x, layer);
    normalize(norm_weight(builder, "ffn_norm", layer));
    x = feed_forward(x, layer);
  }
  builder.enter_layer(-1);
  normalize(norm_weight(builder, "output_norm"));
  Values results{x};
  results.insert(results.end(), step.pages.begin(), step.pages.end());
  return results;
}

Values decoder_head(Builder& builder) {
  const ModelFacts& facts = builder.facts;
  const Value hidden = builder.input("hidden", Meta::tensor(facts.dtype, {tokens_symbol(), facts.config.hidden_size}));
  const Value rows = builder.input("rows", Meta::tensor(DType::i64, {rows_symbol()}));
  const std::string weight = builder.has_separate_head ? "output" : "token_embd";
  return {linear(builder, index_select(hidden, rows), weight, {builder.key(weight)})};
}

std::vector<ModelWeight> decoder_weights() {
  return {
      {"token_embd", "token_embd.weight", "model.embed_tokens.weight", vocabulary_rows},
      {"attn_norm", "blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight", per_hidden},
      {"attn_q", "blk.{}.attn_q.weight", "model.layers.{}.self_attn.q_proj.weight", query_rows, query_heads},
      {"attn_k", "blk.{}.attn_k.weight", "model.layers.{}.self_attn.k_proj.weight", key_value_rows, key_heads},
      {"attn_v", "blk.{}.attn_v.weight", "model.layers.{}.self_attn.v_proj.weight", key_value_rows},
      {"attn_output", "blk.{}.attn_output.weight", "model.layers.{}.self_attn.o_proj.weight", attention_output_rows},
      {"ffn_norm", "blk.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight", per_hidden},
      {"ffn_gate", "blk.{}.ffn_gate.weight", "model.layers.{}.mlp.gate_proj.weight", feed_forward_rows},
      {"ffn_up", "blk.{}.ffn_up.weight", "model.layers.{}.mlp.up_proj.weight", feed_forward_rows},
      {"ffn_down", "blk.{}.ffn_down.weight", "model.layers.{}.mlp.down_proj.weight", feed_forward_output_rows},
      {"output_norm", "output_norm.weight", "model.norm.weight", per_hidden},
      {"output", "output.weight", "lm_head.weight", head_rows},
  };
}

void check_decoder(const ModelConfig& c) {
  USER_CHECK(!c.attention_bias && !c.mlp_bias, "[{}] biases of linear layers are not supported by this architecture",
             c.architecture);
  USER_CHECK(c.expert_count == 0, "[{}] mixtures of experts are not supported, but the model has {} experts",
             c.architecture, c.expert_count);
}

}  // namespace weft::nn
