#pragma once

#include "ir/value.h"

namespace weft {

// 1 / (1 + exp(-x)); by the house mathematics (tensor/house_math.h), rounded to the dtype once.
Value sigmoid(const Value& x, CallSite site = CallSite::current());

}  // namespace weft
