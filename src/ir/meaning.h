#pragma once

// Runs the meaning of an op.

#include "ir/op.h"

namespace weft {

// Returns the results of the op's meaning over values of `home`. A UserError does not name a source line inside the
// meaning, because that line is not in the user's code.
Values run_meaning(const Op& op, Evaluator& home, const Values& operands, const Attributes& attributes);

}  // namespace weft
