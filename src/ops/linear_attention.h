#pragma once

#include <utility>

#include "ir/value.h"

namespace weft {

// Computes attention with a state of fixed size for each head, S [key_dim, value_dim], from token to token:
//   S = exp(log_decay) S
//   S = S + k (beta (v - transpose(S) k)) with `delta`, else S = S + k (beta v)
//   y = scale transpose(S) q
// With `delta` it is the gated delta rule (Qwen 3.5), else gated linear attention, as in Mamba 2, where beta is the
// step. Computed in f32; a state of a sequence's begin is zero.
//   query, key [s0, key_heads, key_dim], value [s0, value_heads, value_dim] -> y of value's type
//   log_decay, beta f32[s0, value_heads]. key_heads divides value_heads: neighbours share one
//   states: pages of f32 with value_heads heads, state_rows key_dim and head_dim value_dim
// Slots, which pages a sequence reads and leaves, and that results do not depend on steps, is as in causal_conv1d.
// The maybe_inplace form donates the pages.
std::pair<Value, Value> linear_attention(const Value& query, const Value& key, const Value& value,
                                         const Value& log_decay, const Value& beta, const Value& states,
                                         const Value& batch, const Value& slots, Scalar scale, bool delta,
                                         CallSite site = CallSite::current());
std::pair<Value, Value> linear_attention(MaybeInplace, const Value& query, const Value& key, const Value& value,
                                         const Value& log_decay, const Value& beta, const Value& states,
                                         const Value& batch, const Value& slots, Scalar scale, bool delta,
                                         CallSite site = CallSite::current());

}  // namespace weft
