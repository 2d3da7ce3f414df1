#pragma once

// Gated activations share these. Each row of x [..., 2 d] holds d gates and the d values that the gates multiply.

#include "base/error.h"
#include "ir/shape_rules.h"
#include "ops/slice.h"

namespace weft {

// Throws UserError unless x, operand 0, is a floating tensor with an even number of columns.
inline void check_gated(const OpRequest& request, const char* op) {
  const Meta& x = request.operand(0);
  require_floating(x, op, "x");
  USER_CHECK(x.rank() >= 1 && x.shape.back().is_number() && x.shape.back().number() % 2 == 0,
             "[{}] x must have an even number of columns, but is {}", op, x.text());
}

// Returns the first d columns and the last d columns.
inline std::pair<Value, Value> halves_of(const Value& x) {
  const std::int64_t half = x.dim(-1).number() / 2;
  return {slice(x, -1, 0, half), slice(x, -1, half, 2 * half)};
}

// Returns columns 0, 2, 4, .. and columns 1, 3, 5, ..
inline std::pair<Value, Value> interleaved_of(const Value& x) {
  const std::int64_t columns = x.dim(-1).number();
  return {slice(x, -1, 0, columns, 2), slice(x, -1, columns == 0 ? 0 : 1, columns, 2)};
}

}  // namespace weft
