#pragma once

#include "ir/value.h"

namespace weft {

// Scales each row of x to unit root mean square, then multiplies by weight in the weight's own type, so that float32
// weights keep their precision with 16-bit x. With variance_size the mean is taken over only that many leading columns.
//   x [..., d], weight [d] or none -> like x
Value rms_norm(const Value& x, const Value& weight, Scalar epsilon,
               std::optional<std::int64_t> variance_size = std::nullopt, CallSite site = CallSite::current());

// Computes rms_norm of rows that are already f32 and returns it as `dtype`. fused_add_rms_norm uses it, too.
Value normalized_rows(const Value& rows, const Value& weight, Scalar epsilon, const Attribute& variance_size,
                      DType dtype);

}  // namespace weft
