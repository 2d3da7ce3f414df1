#pragma once

#include "ir/value.h"

namespace weft {

// Rotates the first rotary_dim elements of each head by the angles of its token's position. The rotated pairs are (i, i
// + rotary_dim / 2) in neox style and (2 i, 2 i + 1) in GPT-J style. The table is cast to the dtype of query; each
// product and each sum is rounded.
//   positions i64[s0], query [s0, heads * head_size], key [s0, kv_heads * head_size],
//   cos_sin_cache [max_position, rotary_dim]: the cosines, then the sines
std::pair<Value, Value> rotary_embedding(const Value& positions, const Value& query, const Value& key,
                                         const Value& cos_sin_cache, std::int64_t head_size, std::int64_t rotary_dim,
                                         bool is_neox_style = true, CallSite site = CallSite::current());
std::pair<Value, Value> rotary_embedding(MaybeInplace, const Value& positions, const Value& query, const Value& key,
                                         const Value& cos_sin_cache, std::int64_t head_size, std::int64_t rotary_dim,
                                         bool is_neox_style = true, CallSite site = CallSite::current());

}  // namespace weft
