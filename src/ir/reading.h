#pragma once

// Functions that let code over Values read facts of a run: the numbers in a value, and whether a condition on sizes
// holds. On concrete Values each returns at once. While a user function is traced (capture/compile.h), reading a value
// ends the current graph, and a branch on a size becomes a guard. In models, patterns and meanings of ops, which are
// traced for all runs at once, it is a UserError that names the line.

#include <cstdint>
#include <string>

#include "ir/value.h"

namespace weft {

// The one element of a tensor as a number. UserError unless there is exactly one, of a plain type.
double item(const Value& value, std::source_location where = std::source_location::current());
// Whether the one element is not 0.
bool is_true(const Value& value, std::source_location where = std::source_location::current());
// All elements, row-major. UserError for block types.
std::vector<double> numbers(const Value& value, std::source_location where = std::source_location::current());
// Text for messages: the type and the first elements, e.g. f32[2, 3] (0.5, 1, -2, ...).
std::string to_text(const Value& value, std::source_location where = std::source_location::current());

// Whether a condition on sizes holds. The sizes are those of `value`, or of other values of its home.
bool guard(const Value& value, const DimCondition& condition,
           std::source_location where = std::source_location::current());
// A size as a plain number. Code that uses it holds for this size only. A negative axis counts from the end.
std::int64_t extent(const Value& value, int axis, std::source_location where = std::source_location::current());

}  // namespace weft
