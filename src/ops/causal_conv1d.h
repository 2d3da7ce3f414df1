#pragma once

#include <utility>

#include "ir/value.h"

namespace weft {

// Convolves each channel of x with the inputs of the last tokens of its own sequence:
//   y[t, c] = sum over j of taps[j, c] x[t - (k - 1) + j, c], from the oldest token on, plus bias[c]
// Tokens before a sequence's first are zeros. Computed in f32.
//   x [s0, c] -> y of the same type; taps f32[k, c]; bias f32[c] or absent
//   states: pages of state_rows k - 1, one head and head_dim c: the last k - 1 inputs, the oldest first
//   slots i64[s0], as of kv_cache_update: a sequence whose rows have negative slots has no pages, and zeros as y
// A sequence begins with the state of the page of its last token before this step. It leaves its state in the page of
// each block that this step ends, and in that of its last row. Returns y and the pages. A row's result does not depend
// on other sequences, nor on how its sequence was split into steps.
// The maybe_inplace form donates the pages.
std::pair<Value, Value> causal_conv1d(const Value& x, const Value& taps, const Value& bias, const Value& states,
                                      const Value& batch, const Value& slots, CallSite site = CallSite::current());
std::pair<Value, Value> causal_conv1d(MaybeInplace, const Value& x, const Value& taps, const Value& bias,
                                      const Value& states, const Value& batch, const Value& slots,
                                      CallSite site = CallSite::current());

}  // namespace weft
