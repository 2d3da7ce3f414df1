#pragma once

#include <tuple>

#include "ir/op.h"

namespace weft {

// Returns int8 codes, scales and zero points of rows. scale = (largest - smallest) / 255, where NaN elements are
// ignored. zero point = -128 - smallest / scale, rounded to the nearest; for a constant row this is NaN, which becomes
// -2^31. code = x * (1 / scale) + zero point: product and sum are rounded once, then to the nearest integer, halves to
// even. A NaN gets code 0.
//   x [..., d] -> i8 like x, f32 [..., 1], i32 [..., 1]
std::tuple<Value, Value, Value> dynamic_per_token_asymmetric_int8_quant(const Value& x,
                                                                        CallSite site = CallSite::current());

}  // namespace weft
