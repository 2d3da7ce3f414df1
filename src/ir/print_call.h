#pragma once

// Prints calls and their inputs, for graphs and for patterns.

#include <string>
#include <vector>

#include "ir/op.h"

namespace weft {

// One text such as `epsilon=1e-05` for each attribute that differs from its default. `op` may be null.
std::vector<std::string> attribute_texts(const Op* op, const Attributes& attributes);

// The number of operands to print: trailing absent optional tensors whose default is none are omitted. `present` has
// one entry for each operand.
std::size_t shown_operands(const Op* op, const std::vector<bool>& present);

// `(a, b)`, or one line for each part when that is longer than 120 characters.
std::string bracketed(const std::vector<std::string>& parts);

// `a, b`
std::string joined(const std::vector<std::string>& parts);

}  // namespace weft
