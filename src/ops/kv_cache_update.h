#pragma once

#include "ir/value.h"

namespace weft {

// Puts the keys and values of this step's tokens into their slots of the KV pages, and gives the pages.
//   key, value [s0, kv_heads, head_dim]; slots i64[s0]: page * block + place in the page, negative = leave out
// The maybe_inplace form gives the pages away; the result lives in them.
Value kv_cache_update(const Value& key, const Value& value, const Value& kv, const Value& slots,
                      CallSite site = CallSite::current());
Value kv_cache_update(MaybeInplace, const Value& key, const Value& value, const Value& kv, const Value& slots,
                      CallSite site = CallSite::current());

}  // namespace weft
