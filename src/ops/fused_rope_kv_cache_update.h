#pragma once

#include "ir/value.h"

namespace weft {

// Rotates query and key by the positions of their tokens. The rotated key and the value are written to their slots in
// the KV pages.
//   positions i64[s0], query [s0, heads * head_size], key [s0, kv_heads * head_size],
//   value [s0, kv_heads, head_size], cos_sin_cache [max_position, rotary_dim],
//   slots i64[s0] as in kv_cache_update -> the rotated query, the pages
// The maybe_inplace form donates the pages; the second result uses their memory.
std::pair<Value, Value> fused_rope_kv_cache_update(const Value& positions, const Value& query, const Value& key,
                                                   const Value& value, const Value& cos_sin_cache, const Value& kv,
                                                   const Value& slots, std::int64_t head_size, std::int64_t rotary_dim,
                                                   bool is_neox_style = true, CallSite site = CallSite::current());
std::pair<Value, Value> fused_rope_kv_cache_update(MaybeInplace, const Value& positions, const Value& query,
                                                   const Value& key, const Value& value, const Value& cos_sin_cache,
                                                   const Value& kv, const Value& slots, std::int64_t head_size,
                                                   std::int64_t rotary_dim, bool is_neox_style = true,
                                                   CallSite site = CallSite::current());

}  // namespace weft
