#include "nn/attention.h"

#include <cmath>
#include <tuple>

#include "nn/in_dtype.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "ops/attention.h"
#include "ops/clamp.h"
#include "ops/index_select.h"
#include "ops/kv_cache_update.h"
#include "ops/layer_norm.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/rotary_embedding.h"
#include "ops/sigmoid.h"
#include "ops/slice.h"

namespace weft::nn {
namespace {

// Queries times a factor of their position.
Value scaled_by_position(Builder& builder, const DecoderStep& step, const Value& query) {
  const Value factors = index_select(builder.weight("query_scale", {}, WeightRole::query_scale), step.positions);
  return mul(query, in_dtype(factors, query.dtype()));
}

// Attention to the pages that the layer reads: [s0, heads, head_dim].
Value attention_to_pages(Builder& builder, DecoderStep& step, const Value& query, int layer) {
  const ModelConfig& c = builder.facts.config;
  const Dim rows = query.dim(0);
  const std::int64_t head_dim = c.head_dim_of(layer);
  const Value sinks = builder.has("attn_sinks", layer) ? norm_weight(builder, "attn_sinks", layer) : Value();
  return attention(reshape(query, {rows, c.head_count, head_dim}), step.pages_of("kv", c.kv_layer_of(layer)),
                   step.batch, sinks, step.score_bias, c.attention_scale_of(layer), c.window_of(layer),
                   c.attention_softcap, c.is_causal);
}

// The output projection of attention's result.
Value attention_output(Builder& builder, const Value& found, int layer) {
  return linear(builder, reshape(found, {found.dim(0), found.dim(1) * found.dim(2)}), "attn_output", layer);
}

// Rotates a query alone. The op also needs a key; one of the query's heads is passed as such.
Value rotated_query(Builder& builder, const DecoderStep& step, const Value& query, int layer) {
  const ModelConfig& c = builder.facts.config;
  const RopeConfig* rope = c.rope_of(layer);
  if (rope == nullptr) return query;
  const std::int64_t head_dim = c.head_dim_of(layer);
  return rotary_embedding(step.positions, query, slice(query, -1, 0, head_dim),
                          rope == &c.rope ? step.rotary : step.sliding_rotary, head_dim, rope->rotary_dim,
                          rope->pairing == RotaryPairing::halves)
      .first;
}

// The columns of the product of attn_qkv are, for each key head, those of its queries, of its key and of its value.
// Their parts are copied, because the heads of a row must be contiguous.
QueryKeyValue heads_of_groups(const ModelConfig& c, const Value& product) {
  const std::int64_t queries = c.head_count / c.kv_head_count * c.head_dim;
  const auto part = [&](std::int64_t first, std::int64_t count) {
    return columns_of_groups(product, c.kv_head_count, first, count);
  };
  return {part(0, queries), part(queries, c.head_dim), part(queries + c.head_dim, c.head_dim)};
}

// x [s0, heads * head_dim] with a norm of each head, whose weights are [heads, head_dim].
Value with_own_norms(Builder& builder, const Value& x, const std::string& name, int layer) {
  const ModelConfig& c = builder.facts.config;
  const std::int64_t width = c.head_dim_of(layer);
  const Value heads = reshape(x, {x.dim(0), x.dim(1).number() / width, width});
  const Value normalized =
      c.norm == NormKind::rms ? rms_norm(heads, {}, c.norm_eps) : layer_norm(heads, {}, {}, c.norm_eps);
  return reshape(mul(normalized, norm_weight(builder, name, layer)), {x.dim(0), x.dim(1)});
}

}  // namespace

QueryKeyValue query_key_value(Builder& builder, const Value& x, int layer) {
  const ModelConfig& c = builder.facts.config;
  const std::int64_t query_width = c.head_count * c.head_dim_of(layer),
                     kv_width = c.kv_head_count_of(layer) * c.head_dim_of(layer);
  const bool is_merged = builder.has("attn_qkv", layer), has_values = is_merged || builder.has("attn_v", layer);
  std::vector<std::string> weights{"attn_q", "attn_k"};
  if (has_values) weights.emplace_back("attn_v");
  const Values products =
      is_merged ? Values{linear(builder, x, "attn_qkv", layer)} : merged_products(builder, x, "qkv", weights, layer);
  // The one key head of a model is a group of all columns, which need not be copied.
  if (is_merged && c.groups_heads && c.kv_head_count > 1) return heads_of_groups(c, products[0]);
  QueryKeyValue heads;
  heads.query = columns_of(products, 0, query_width);
  heads.key = columns_of(products, query_width, kv_width);
  heads.value = has_values ? columns_of(products, query_width + kv_width, kv_width) : heads.key;
  return heads;
}

void rotate(Builder& builder, DecoderStep& step, QueryKeyValue& heads, int layer) {
  const ModelConfig& c = builder.facts.config;
  const RopeConfig* rope = c.rope_of(layer);
  if (rope == nullptr) {
    if (c.scales_unrotated_queries) heads.query = scaled_by_position(builder, step, heads.query);
    return;
  }
  const Value& table = rope == &c.rope ? step.rotary : step.sliding_rotary;
  std::tie(heads.query, heads.key) =
      rotary_embedding(maybe_inplace, step.positions, heads.query, heads.key, table, c.head_dim_of(layer),
                       rope->rotary_dim, rope->pairing == RotaryPairing::halves);
  if (rope->query_scale_beta != 0) heads.query = scaled_by_position(builder, step, heads.query);
}

Value attention_of_heads(Builder& builder, DecoderStep& step, const QueryKeyValue& heads, int layer) {
  const ModelConfig& c = builder.facts.config;
  const Shape kv_shape{heads.key.dim(0), c.kv_head_count_of(layer), c.head_dim_of(layer)};
  Value& pages = step.pages_of("kv", layer);
  const bool has_values = !builder.facts.kv_of(layer).keys_are_values;
  pages = kv_cache_update(maybe_inplace, reshape(heads.key, kv_shape),
                          has_values ? reshape(heads.value, kv_shape) : Value(), pages, step.slots);
  return attention_to_pages(builder, step, heads.query, layer);
}

Value attend_rotated(Builder& builder, DecoderStep& step, QueryKeyValue heads, int layer) {
  return attention_output(builder, attention_of_heads(builder, step, heads, layer), layer);
}

Value attend(Builder& builder, DecoderStep& step, QueryKeyValue heads, int layer) {
  const double limit = builder.facts.config.query_key_value_limit;
  if (std::isfinite(limit))
    for (Value* value : {&heads.query, &heads.key, &heads.value}) *value = clamp(*value, -limit, limit);
  rotate(builder, step, heads, layer);
  return attend_rotated(builder, step, std::move(heads), layer);
}

Value self_attention(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  return attend(builder, step, query_key_value(builder, x, layer), layer);
}

Value self_attention_with_output_norm(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  QueryKeyValue heads = query_key_value(builder, x, layer);
  const Dim width = heads.query.dim(1);
  rotate(builder, step, heads, layer);
  const Value found = reshape(attention_of_heads(builder, step, heads, layer), {x.dim(0), width});
  return linear(builder, norm(builder, found, "attn_sub_norm", layer), "attn_output", layer);
}

Value self_attention_with_head_norms(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  QueryKeyValue heads = query_key_value(builder, x, layer);
  heads.query = norm_heads(builder, heads.query, "attn_q_norm", layer);
  heads.key = norm_heads(builder, heads.key, "attn_k_norm", layer);
  return attend(builder, step, std::move(heads), layer);
}

Value self_attention_with_gate(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  const ModelConfig& c = builder.facts.config;
  const std::int64_t width = c.head_dim_of(layer), queries = 2 * c.head_count * width,
                     keys = c.kv_head_count_of(layer) * width;
  const Values products = merged_products(builder, x, "qkv", {"attn_q", "attn_k", "attn_v"}, layer);
  const Value pairs = columns_of(products, 0, queries);
  const Value gate = columns_of_groups(pairs, c.head_count, width, width);
  QueryKeyValue heads;
  heads.query = norm_heads(builder, columns_of_groups(pairs, c.head_count, 0, width), "attn_q_norm", layer);
  heads.key = norm_heads(builder, columns_of(products, queries, keys), "attn_k_norm", layer);
  heads.value = columns_of(products, queries + keys, keys);
  rotate(builder, step, heads, layer);
  const Value found = reshape(attention_of_heads(builder, step, heads, layer), {x.dim(0), queries / 2});
  return linear(builder, mul(found, sigmoid(gate)), "attn_output", layer);
}

Value self_attention_with_projected_gate(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  QueryKeyValue heads = query_key_value(builder, x, layer);
  heads.query = norm_heads(builder, heads.query, "attn_q_norm", layer);
  heads.key = norm_heads(builder, heads.key, "attn_k_norm", layer);
  rotate(builder, step, heads, layer);
  const Value gate = linear(builder, x, "attn_gate", layer);
  const Value found = reshape(attention_of_heads(builder, step, heads, layer), {x.dim(0), gate.dim(1)});
  return linear(builder, mul(found, sigmoid(gate)), "attn_output", layer);
}

Value self_attention_with_own_head_norms(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  QueryKeyValue heads = query_key_value(builder, x, layer);
  if (builder.facts.config.has_head_norms) {
    heads.query = with_own_norms(builder, heads.query, "attn_q_norm", layer);
    heads.key = with_own_norms(builder, heads.key, "attn_k_norm", layer);
  }
  return attend(builder, step, std::move(heads), layer);
}

Value self_attention_with_row_norms(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  QueryKeyValue heads = query_key_value(builder, x, layer);
  heads.query = norm(builder, heads.query, "attn_q_norm", layer);
  heads.key = norm(builder, heads.key, "attn_k_norm", layer);
  return attend(builder, step, std::move(heads), layer);
}

Value self_attention_with_all_norms(Builder& builder, DecoderStep& step, const Value& x, int layer) {
  if (!builder.facts.config.has_own_kv(layer)) {
    const Value query = norm_heads(builder, linear(builder, x, "attn_q", layer), "attn_q_norm", layer);
    const Value found = attention_to_pages(builder, step, rotated_query(builder, step, query, layer), layer);
    return attention_output(builder, found, layer);
  }
  QueryKeyValue heads = query_key_value(builder, x, layer);
  heads.query = norm_heads(builder, heads.query, "attn_q_norm", layer);
  heads.key = norm_heads(builder, heads.key, "attn_k_norm", layer);
  heads.value = norm_heads(builder, heads.value, layer);
  return attend(builder, step, std::move(heads), layer);
}

}  // namespace weft::nn
