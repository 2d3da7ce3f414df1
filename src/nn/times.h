#pragma once

#include "ops/mul_scalar.h"

namespace weft::nn {

// x times a factor of the config; nothing is computed for 1.
inline Value times(const Value& x, double factor) { return factor == 1 ? x : mul_scalar(x, factor); }

}  // namespace weft::nn
