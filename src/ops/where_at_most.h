#pragma once

#include "ir/value.h"

namespace weft {

// Returns `then` where x <= bound and `otherwise` elsewhere, also where x is NaN. The bound is compared as f32 (f64 for
// f64). `then` and `otherwise` have the same dtype. Each of their dims matches x or is 1, and leading dims may be
// missing.
Value where_at_most(const Value& x, const Value& then, const Value& otherwise, Scalar bound,
                    CallSite site = CallSite::current());

}  // namespace weft
