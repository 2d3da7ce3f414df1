#pragma once

// Causal attention with rotary positions over paged keys and values. Several query heads may share a key and value
// head.

#include "nn/decoder.h"

namespace weft::nn {

// The query, key and value of one layer. The heads of a row are contiguous: query is [s0, heads * head_dim], key and
// value are [s0, kv_heads * head_dim].
struct QueryKeyValue {
  Value query, key, value;
};

// Computes all three from x [s0, d] by one product.
QueryKeyValue query_key_value(Builder& builder, const Value& x, int layer);

// Rotates query and key by position, writes key and value to the layer's pages, computes attention, and returns its
// output projection [s0, d].
Value attend(Builder& builder, DecoderStep& step, QueryKeyValue heads, int layer);

}  // namespace weft::nn
