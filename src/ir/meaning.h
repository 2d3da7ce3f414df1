#pragma once

// Running what an op means.

#include "ir/op.h"

namespace weft {

// The results of the op's meaning over values of `home`. A UserError names no line of the meaning, which is nobody's
// but the op's.
Values run_meaning(const Op& op, Evaluator& home, const Values& operands, const Attributes& attributes);

}  // namespace weft
