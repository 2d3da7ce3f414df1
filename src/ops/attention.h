#pragma once

#include "ir/value.h"

namespace weft {

// Causal attention of each row over the tokens of its own sequence in a paged cache.
//   query [s0, heads, head_dim] -> the same; KV heads are shared by heads / kv_heads query heads each
// Row r of a sequence with n rows in this step sees its tokens [0, length - (n - 1 - r)), with a window the last
// `window` of them: its own and window - 1 before it. A row's result does not depend on other rows, on the block size,
// nor on how its prompt was cut into steps.
Value attention(const Value& query, const Value& kv, const Value& batch, Scalar scale,
                std::optional<std::int64_t> window = std::nullopt, CallSite site = CallSite::current());

// UserError unless a window holds a token at least.
void check_attention_window(const Attributes& attributes, const char* op);

}  // namespace weft
