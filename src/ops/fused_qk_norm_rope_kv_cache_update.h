#pragma once

#include "ir/value.h"

namespace weft {

// Normalizes each head of query and key (rms_norm), then rotates it by the position of its token. The rotated key and
// the value are written to their slots in the KV pages.
//   weights [head_size] or none, the rest as of fused_rope_kv_cache_update -> the rotated query, the pages
// The maybe_inplace form donates the pages; the second result uses their memory.
std::pair<Value, Value> fused_qk_norm_rope_kv_cache_update(
    const Value& positions, const Value& query, const Value& key, const Value& value, const Value& query_weight,
    const Value& key_weight, const Value& cos_sin_cache, const Value& kv, const Value& slots, Scalar epsilon,
    std::int64_t head_size, std::int64_t rotary_dim, bool is_neox_style = true, CallSite site = CallSite::current());
std::pair<Value, Value> fused_qk_norm_rope_kv_cache_update(MaybeInplace, const Value& positions, const Value& query,
                                                           const Value& key, const Value& value,
                                                           const Value& query_weight, const Value& key_weight,
                                                           const Value& cos_sin_cache, const Value& kv,
                                                           const Value& slots, Scalar epsilon, std::int64_t head_size,
                                                           std::int64_t rotary_dim, bool is_neox_style = true,
                                                           CallSite site = CallSite::current());

}  // namespace weft
