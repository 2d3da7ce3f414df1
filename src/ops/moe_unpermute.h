#pragma once

#include "ir/value.h"

namespace weft {

// Returns, for each token, the sum of the rows of its k experts times their weights, computed in f32 and rounded once.
// The rows are ordered as by moe_sort: row positions[t, j] of x is that of expert j of token t.
//   x [k * rows, d], topk_weights f32[rows, k], positions i32 or i64 [rows, k] -> [rows, d]
Value moe_unpermute(const Value& x, const Value& topk_weights, const Value& positions,
                    CallSite site = CallSite::current());

}  // namespace weft
