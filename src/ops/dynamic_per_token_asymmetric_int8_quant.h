#pragma once

#include <tuple>

#include "ir/op.h"

namespace weft {

// Int8 codes, scales and zero points of rows: scale = (largest - smallest) / 255 over what is not NaN, zero point =
// -128 - smallest / scale rounded to the nearest (NaN, of constant rows, gives -2^31), code = x * (1 / scale) + zero
// point, product and sum rounded as one, then to the nearest, halves to even. NaN gives 0.
//   x [..., d] -> i8 like x, f32 [..., 1], i32 [..., 1]
std::tuple<Value, Value, Value> dynamic_per_token_asymmetric_int8_quant(const Value& x,
                                                                        CallSite site = CallSite::current());

}  // namespace weft
