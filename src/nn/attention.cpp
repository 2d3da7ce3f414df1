#include "nn/attention.h"

#include <tuple>

#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/attention.h"
#include "ops/cast.h"
#include "ops/index_select.h"
#include "ops/kv_cache_update.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/rotary_embedding.h"
#include "ops/slice.h"

namespace weft::nn {
namespace {

// Queries times a factor of their position.
Value scaled_by_position(Builder& builder, const DecoderStep& step, const Value& query) {
  const Value factors = index_select(builder.weight("query_scale", {}, WeightRole::query_scale), step.positions);
  return mul(query, factors.dtype() == query.dtype() ? factors : cast(factors, query.dtype()));
}

}  // namespace

QueryKeyValue query_key_value(Builder& builder, const Value& x, int layer) {
  const ModelConfig& c = builder.facts.config;
  const std::int64_t query_width = c.head_count * c.head_dim, kv_width = c.kv_head_count * c.head_dim;
  const Value qkv = builder.has("attn_qkv", layer)
                        ? linear(builder, x, "attn_qkv", layer)
                        : merged_linear(builder, x, "qkv", {"attn_q", "attn_k", "attn_v"}, layer);
  QueryKeyValue heads;
  heads.query = slice(qkv, -1, 0, query_width);
  heads.key = slice(qkv, -1, query_width, query_width + kv_width);
  heads.value = slice(qkv, -1, query_width + kv_width, query_width + 2 * kv_width);
  return heads;
}

void rotate(Builder& builder, DecoderStep& step, QueryKeyValue& heads, int layer) {
  const ModelConfig& c = builder.facts.config;
  const RopeConfig* rope = c.rope_of(layer);
  if (rope == nullptr) return;
  const Value& table = rope == &c.rope ? step.rotary : step.sliding_rotary;
  std::tie(heads.query, heads.key) =
      rotary_embedding(maybe_inplace, step.positions, heads.query, heads.key, table, c.head_dim, rope->rotary_dim,
                       rope->pairing == RotaryPairing::halves);
  if (rope->query_scale_beta != 0) heads.query = scaled_by_position(builder, step, heads.query);
}

Value attention_of_heads(Builder& builder, DecoderStep& step, const QueryKeyValue& heads, int layer) {
  const ModelConfig& c = builder.facts.config;
  const auto& [query, key, value] = heads;
  const Dim rows = query.dim(0);
  const Shape kv_shape{rows, c.kv_head_count, c.head_dim};
  Value& pages = step.pages[static_cast<std::size_t>(layer)];
  pages = kv_cache_update(maybe_inplace, reshape(key, kv_shape), reshape(value, kv_shape), pages, step.slots);
  const Value sinks = builder.has("attn_sinks", layer) ? norm_weight(builder, "attn_sinks", layer) : Value();
  return attention(reshape(query, {rows, c.head_count, c.head_dim}), pages, step.batch, sinks, c.attention_scale,
                   c.window_of(layer), c.attention_softcap);
}

Value attend_rotated(Builder& builder, DecoderStep& step, QueryKeyValue heads, int layer) {
  const ModelConfig& c = builder.facts.config;
  const Value found = attention_of_heads(builder, step, heads, layer);
  return linear(builder, reshape(found, {found.dim(0), c.head_count * c.head_dim}), "attn_output", layer);
}

Value attend(Builder& builder, DecoderStep& step, QueryKeyValue heads, int layer) {
  rotate(builder, step, heads, layer);
  return attend_rotated(builder, step, std::move(heads), layer);
}

Value self_attention(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  return attend(builder, step, query_key_value(builder, x, layer), layer);
}

Value self_attention_with_head_norms(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  QueryKeyValue heads = query_key_value(builder, x, layer);
  heads.query = norm_heads(builder, heads.query, "attn_q_norm", layer);
  heads.key = norm_heads(builder, heads.key, "attn_k_norm", layer);
  return attend(builder, step, std::move(heads), layer);
}

Value self_attention_with_row_norms(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  QueryKeyValue heads = query_key_value(builder, x, layer);
  heads.query = norm(builder, heads.query, "attn_q_norm", layer);
  heads.key = norm(builder, heads.key, "attn_k_norm", layer);
  return attend(builder, step, std::move(heads), layer);
}

}  // namespace weft::nn
