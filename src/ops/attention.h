#pragma once

#include "ir/value.h"

namespace weft {

// Computes causal attention of each row over the tokens of its own sequence in a paged cache.
//   query [s0, heads, head_dim] -> the same; KV heads are shared by heads / kv_heads query heads each
// Row r of a sequence with n rows in this step attends to its tokens [0, length - (n - 1 - r)). With a window it
// attends only to the last `window` of them: its own token and the window - 1 before it. A row's result does not depend
// on other rows, on the block size, or on how the prompt was split into steps.
Value attention(const Value& query, const Value& kv, const Value& batch, Scalar scale,
                std::optional<std::int64_t> window = std::nullopt, CallSite site = CallSite::current());

// Throws UserError unless the window holds at least one token.
void check_attention_window(const Attributes& attributes, const char* op);

}  // namespace weft
