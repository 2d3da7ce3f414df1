#pragma once

#include "ir/value.h"

namespace weft {

// Scales each row of x to unit root mean square, then by weight in the weight's own type (so that float32 weights keep
// their precision over 16-bit x). With variance_size the mean is taken over that many leading columns.
//   x [..., d], weight [d] or none -> like x
Value rms_norm(const Value& x, const Value& weight, Scalar epsilon,
               std::optional<std::int64_t> variance_size = std::nullopt, CallSite site = CallSite::current());

// The definition over rows that are f32 already, given back as `dtype`; fused_add_rms_norm shares it.
Value normalized_rows(const Value& rows, const Value& weight, Scalar epsilon, const Attribute& variance_size,
                      DType dtype);

}  // namespace weft
