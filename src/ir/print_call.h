#pragma once

// How calls and their inputs print, the same in graphs and patterns.

#include <string>
#include <vector>

#include "ir/op.h"

namespace weft {

// `epsilon=1e-05`, for each attribute that is not its default; `op` may be null.
std::vector<std::string> attribute_texts(const Op* op, const Attributes& attributes);

// Trailing absent optional tensors whose default is none are not printed: how many operands are, of those that
// `present` tells there or absent.
std::size_t shown_operands(const Op* op, const std::vector<bool>& present);

// `(a, b)`, or a line each when that is longer than 120 characters.
std::string bracketed(const std::vector<std::string>& parts);

// `a, b`
std::string joined(const std::vector<std::string>& parts);

}  // namespace weft
