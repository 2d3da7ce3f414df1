#pragma once

// Compares an attribute of a pattern with an attribute of a graph.

#include <string>

#include "ir/pattern.h"

namespace weft {

// Returns the symbol `?name` when the whole attribute is one wildcard; null otherwise.
const Dim* lone_wildcard(const Attribute& attribute);
// Whether the attribute contains a wildcard.
bool holds_wildcard(const Attribute& attribute);
// Whether the values are equal. A string equals a word of the same text, because a schema's `str` may be either.
bool same_value(const Attribute& a, const Attribute& b);
// The attribute as a number, integer or real; nothing for a symbol and for anything that is not a number.
std::optional<double> number_of(const Attribute& attribute);
bool holds(const Condition& condition, const Attribute& value);
// "64 or 128", "> 0.0"
std::string wanted_text(const Condition& condition);

}  // namespace weft
