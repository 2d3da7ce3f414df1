#pragma once

#include "ir/value.h"

namespace weft {

// Normalizes each head of query and key (rms_norm), then rotates it by the position of its token.
//   query [s0, heads * head_size], key [s0, kv_heads * head_size], weights [head_size] or none -> the same two
std::pair<Value, Value> fused_qk_norm_rope(const Value& positions, const Value& query, const Value& key,
                                           const Value& query_weight, const Value& key_weight,
                                           const Value& cos_sin_cache, Scalar epsilon, std::int64_t head_size,
                                           std::int64_t rotary_dim, bool is_neox_style = true,
                                           CallSite site = CallSite::current());

}  // namespace weft
