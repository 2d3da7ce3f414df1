#pragma once

#include "ops/cast.h"

namespace weft::nn {

// x, cast if it has another dtype.
inline Value in_dtype(const Value& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }

}  // namespace weft::nn
