#pragma once

// What code over Values may ask of a run: the numbers that a value holds, and whether a condition on sizes holds. On
// concrete Values each is answered at once. While a function is captured (capture/compile.h) to read a value ends a
// graph, and to branch on a size becomes a guard. In models, patterns and meanings of ops, which are traced for all
// runs at once, it is a UserError that names the line.

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
// For people: the type and the first elements, f32[2, 3] (0.5, 1, -2, ...).
std::string to_text(const Value& value, std::source_location where = std::source_location::current());

// Whether a condition on sizes of `value`, or of other values of its home, holds.
bool guard(const Value& value, const DimCondition& condition,
           std::source_location where = std::source_location::current());
// A size as a plain number, so that what follows holds for this size alone. A negative axis counts from the end.
std::int64_t extent(const Value& value, int axis, std::source_location where = std::source_location::current());

}  // namespace weft
