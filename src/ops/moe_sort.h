#pragma once

#include <tuple>

#include "ir/value.h"

namespace weft {

// Orders the pairs of a token and one of its k experts by expert, and pairs of one expert by token. Pair j of token t
// is row positions[t, j] of that order. `tokens` and `experts` have the token and the expert of each row.
//   topk_indices i32 or i64 [rows, k] -> tokens i32[k * rows], experts i32[k * rows], positions i32[rows, k]
std::tuple<Value, Value, Value> moe_sort(const Value& topk_indices, CallSite site = CallSite::current());

}  // namespace weft
