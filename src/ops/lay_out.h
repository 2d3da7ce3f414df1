#pragma once

#include "ir/value.h"

namespace weft {

// Copies x to newly allocated memory with these strides, in elements. The gaps between its elements have undefined
// contents.
Value lay_out(const Value& x, Shape strides, CallSite site = CallSite::current());

}  // namespace weft
