#pragma once

#include "ir/value.h"

namespace weft {

// `then` where x <= bound, `otherwise` where it is not, which is also where x is NaN. The bound is compared as f32 (f64
// for f64). Both are of one dtype and match x or have 1 in its place, and may lack dims in front.
Value where_at_most(const Value& x, const Value& then, const Value& otherwise, Scalar bound,
                    CallSite site = CallSite::current());

}  // namespace weft
