#pragma once

#include "ir/value.h"

namespace weft {

// Up to 64 literal elements, row-major; the shape defaults to one dim that holds them all.
Value constant(Evaluator& evaluator, std::vector<double> values, std::optional<Shape> shape = std::nullopt,
               DType dtype = DType::f32, CallSite site = CallSite::current());

}  // namespace weft
