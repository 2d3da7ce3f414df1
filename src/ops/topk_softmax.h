#pragma once

#include "ir/value.h"

namespace weft {

// The router of a mixture of experts: softmax over all experts in f32, then the topk largest and their indices, the
// largest first. With `renormalize` these are divided by their sum.
//   gating_output [rows, experts] -> weights f32[rows, topk], indices i32[rows, topk]
std::pair<Value, Value> topk_softmax(const Value& gating_output, std::int64_t topk, bool renormalize = false,
                                     CallSite site = CallSite::current());

}  // namespace weft
