#pragma once

#include "ir/value.h"

namespace weft {

// Returns (rms_norm(x + x_residual), x + x_residual). The norm is computed on the float32 sum before rounding
// (intermediate=f32), or on the rounded sum (intermediate=input_dtype, which is exactly add followed by rms_norm). The
// maybe_inplace form donates x and x_residual; results 0 and 1 may use their memory.
std::pair<Value, Value> fused_add_rms_norm(const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon,
                                           std::optional<std::int64_t> variance_size = std::nullopt,
                                           std::string_view intermediate = "f32", CallSite site = CallSite::current());
std::pair<Value, Value> fused_add_rms_norm(MaybeInplace, const Value& x, const Value& x_residual, const Value& weight,
                                           Scalar epsilon, std::optional<std::int64_t> variance_size = std::nullopt,
                                           std::string_view intermediate = "f32", CallSite site = CallSite::current());

}  // namespace weft
