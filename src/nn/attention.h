#pragma once

// Attention with rotary positions over paged keys and values. Several query heads may share a key and value
// head.

#include "nn/decoder.h"

namespace weft::nn {

// The query, key and value of one layer. The heads of a row are contiguous: query is [s0, heads * head_dim], key and
// value are [s0, kv_heads * head_dim].
struct QueryKeyValue {
  Value query, key, value;
};

// Computes all three from x [s0, d] by one product. The model's table has one weight for it, attn_qkv, or three that
// are merged, attn_q, attn_k and attn_v. If config.groups_heads, the columns of the product are sorted by key head.
QueryKeyValue query_key_value(Builder& builder, const Value& x, int layer);

// Rotates query and key by position, if the layer has positions. Else it scales the query by position, if the config
// asks for it.
void rotate(Builder& builder, DecoderStep& step, QueryKeyValue& heads, int layer);

// Writes key and value to the layer's pages and computes attention: [s0, heads, head_dim].
Value attention_of_heads(Builder& builder, DecoderStep& step, const QueryKeyValue& heads, int layer);

// The same, and the output projection [s0, d].
Value attend_rotated(Builder& builder, DecoderStep& step, QueryKeyValue heads, int layer);

// All of the above. Before the rotation, all three are clamped to config.query_key_value_limit.
Value attend(Builder& builder, DecoderStep& step, QueryKeyValue heads, int layer);

// Attention of a layer without more: query, key and value of x, rotated.
Value self_attention(Builder& builder, DecoderStep& step, const Value& x, int layer);

// The same with a norm of the row of all heads, attn_sub_norm, before the output projection.
Value self_attention_with_output_norm(Builder& builder, DecoderStep& step, const Value& x, int layer);

// The same with a norm of each head of query and key, by weights attn_q_norm and attn_k_norm [head_dim], before they
// are rotated.
Value self_attention_with_head_norms(Builder& builder, DecoderStep& step, const Value& x, int layer);

// As with head norms; where config.has_attention_gate, attn_q has a gate of the width of a head after each query head,
// whose sigmoid multiplies the head's result.
Value self_attention_with_gate(Builder& builder, DecoderStep& step, const Value& x, int layer);

// As with head norms, and the head's result is multiplied by the sigmoid of the product of x with attn_gate.
Value self_attention_with_projected_gate(Builder& builder, DecoderStep& step, const Value& x, int layer);

// The same with a weight [heads, head_dim] for each of the two, if the config has head norms.
Value self_attention_with_own_head_norms(Builder& builder, DecoderStep& step, const Value& x, int layer);

// The same with a norm of all heads of query, and of key, together, by weights of the width of their rows.
Value self_attention_with_row_norms(Builder& builder, DecoderStep& step, const Value& x, int layer);

// As with head norms, and with a norm of each head of the values, which has no weight. A layer without keys and values
// of its own reads those of the layer that the config gives it.
Value self_attention_with_all_norms(Builder& builder, DecoderStep& step, const Value& x, int layer);

}  // namespace weft::nn
