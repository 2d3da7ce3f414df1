#pragma once

#include "ir/value.h"

namespace weft {

// Writes the keys and values of this step's tokens to their slots in the KV pages and returns the pages.
//   key, value [s0, kv_heads, head_dim], but no value if the pages' keys are the values; slots i64[s0]: page * block +
//   offset in the page; a negative slot is skipped
// The maybe_inplace form donates the pages; the result uses their memory.
Value kv_cache_update(const Value& key, const Value& value, const Value& kv, const Value& slots,
                      CallSite site = CallSite::current());
Value kv_cache_update(MaybeInplace, const Value& key, const Value& value, const Value& kv, const Value& slots,
                      CallSite site = CallSite::current());

}  // namespace weft
