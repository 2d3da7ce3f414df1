#pragma once

#include "ir/value.h"

namespace weft {

// Each element as a power of two of its sign: the nearest one away from zero (rounding=up: exp2(ceil(log2 |x|)) without
// its rounding errors, the UE8M0 of scales) or towards it (rounding=down). Powers of two, zeros, infinities and NaN
// stay what they are.
Value round_to_power_of_two(const Value& x, std::string_view rounding = "up", CallSite site = CallSite::current());

}  // namespace weft
