#pragma once

#include "ir/value.h"

namespace weft {

// Returns a tensor of up to 64 literal elements, in row-major order. The default shape has one dim that holds all of
// them.
Value constant(Evaluator& evaluator, std::vector<double> values, std::optional<Shape> shape = std::nullopt,
               DType dtype = DType::f32, CallSite site = CallSite::current());

}  // namespace weft
