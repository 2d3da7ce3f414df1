#pragma once

#include "ir/value.h"

namespace weft {

// A copy of x in fresh memory with these strides, in elements. What lies between its elements is undefined.
Value lay_out(const Value& x, Shape strides, CallSite site = CallSite::current());

}  // namespace weft
