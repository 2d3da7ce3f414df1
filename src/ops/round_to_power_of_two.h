#pragma once

#include "ir/value.h"

namespace weft {

// Rounds each element to a power of two with the same sign: away from zero (rounding=up: exp2(ceil(log2 |x|)) without
// its rounding errors, the UE8M0 form of scales) or towards zero (rounding=down). Powers of two, zeros, infinities and
// NaN do not change.
Value round_to_power_of_two(const Value& x, std::string_view rounding = "up", CallSite site = CallSite::current());

}  // namespace weft
