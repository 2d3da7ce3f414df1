#pragma once

#include <utility>

#include "ir/value.h"

namespace weft {

// Computes the state of Mamba 1, h [state, channels], from token to token, where each element decays by itself:
//   h[n, c] = exp(step[c] decay[n, c]) h[n, c] + input[n] step[c] x[c]
//   y[c] = sum over n of output[n] h[n, c]
// Computed in f32; a state of a sequence's begin is zero.
//   x [s0, channels] -> y of the same type; step f32[s0, channels]; decay f32[state, channels], below zero
//   input, output [s0, state] of x's dtype
//   states: pages of f32 with one head, state_rows `state` and head_dim `channels`
// Slots, which pages a sequence reads and leaves, and that results do not depend on steps, is as in causal_conv1d.
// The maybe_inplace form donates the pages.
std::pair<Value, Value> selective_scan(const Value& x, const Value& step, const Value& decay, const Value& input,
                                       const Value& output, const Value& states, const Value& batch, const Value& slots,
                                       CallSite site = CallSite::current());
std::pair<Value, Value> selective_scan(MaybeInplace, const Value& x, const Value& step, const Value& decay,
                                       const Value& input, const Value& output, const Value& states, const Value& batch,
                                       const Value& slots, CallSite site = CallSite::current());

}  // namespace weft
