#pragma once

#include "ir/value.h"

namespace weft {

// Computes attention of each row over the tokens of its own sequence in a paged cache.
//   query [s0, heads, head_dim] -> the same; KV heads are shared by heads / kv_heads query heads each
// Row r of a sequence with n rows in this step attends to its tokens [0, length - (n - 1 - r)). With a window it
// attends only to the last `window` of them: its own token and the window - 1 before it. A row's result does not depend
// on other rows, on the block size, or on how the prompt was split into steps.
// Without `causal`, as in encoders, a row attends to all `length` tokens of its sequence; with a window to those before
// its own as above, and to as many after it. The tokens after it must be in the cache, so a prompt is one step.
//   sinks [heads] or absent: one more score for each head, which takes its part of the probabilities but has no value
//   bias f32[heads, 2 reach - 1] or absent: added to the scores, by head and distance. The score of a query at position
//     i and a key at position j gets column j - i + reach - 1; for distances of `reach` and more, the first or the last
//   softcap, unless it is 0, bounds the scores before the bias is added: softcap tanh(scale q k / softcap)
Value attention(const Value& query, const Value& kv, const Value& batch, const Value& sinks, const Value& bias,
                Scalar scale, std::optional<std::int64_t> window = std::nullopt, Scalar softcap = 0.0,
                bool causal = true, CallSite site = CallSite::current());

// Throws UserError unless the window holds at least one token.
void check_attention_window(const Attributes& attributes, const char* op);

}  // namespace weft
