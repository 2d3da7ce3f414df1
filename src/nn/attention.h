#pragma once

// Causal attention over paged keys and values, heads of which may be shared; rotary positions.

#include "nn/decoder.h"

namespace weft::nn {

// Of one layer, heads side by side: query [s0, heads * head_dim], the others [s0, kv_heads * head_dim].
struct QueryKeyValue {
  Value query, key, value;
};

// All three of x [s0, d] by one product.
QueryKeyValue query_key_value(Builder& builder, const Value& x, int layer);

// Query and key turned by position, key and value put into the layer's pages, and the output projection of what the
// queries find there [s0, d].
Value attend(Builder& builder, DecoderStep& step, QueryKeyValue heads, int layer);

}  // namespace weft::nn
