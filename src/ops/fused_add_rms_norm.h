#pragma once

#include "ir/value.h"

namespace weft {

// rms_norm of x + x_residual, and the sum itself: (normalized, x + x_residual). What is normalized is the float32 sum
// before it is rounded (intermediate=f32), or the rounded one (intermediate=input_dtype: exactly add, then rms_norm).
// The maybe_inplace form gives x and x_residual away; results 0 and 1 may live in them.
std::pair<Value, Value> fused_add_rms_norm(const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon,
                                           std::optional<std::int64_t> variance_size = std::nullopt,
                                           std::string_view intermediate = "f32", CallSite site = CallSite::current());
std::pair<Value, Value> fused_add_rms_norm(MaybeInplace, const Value& x, const Value& x_residual, const Value& weight,
                                           Scalar epsilon, std::optional<std::int64_t> variance_size = std::nullopt,
                                           std::string_view intermediate = "f32", CallSite site = CallSite::current());

}  // namespace weft
