#pragma once

// What an attribute of a pattern says of an attribute of a graph.

#include <string>

#include "ir/pattern.h"

namespace weft {

// The symbol `?name` when the attribute is a wildcard alone; null otherwise.
const Dim* lone_wildcard(const Attribute& attribute);
// Whether a wildcard stands anywhere in it.
bool holds_wildcard(const Attribute& attribute);
// A schema's `str` may be a string or a word.
bool same_value(const Attribute& a, const Attribute& b);
// The number that the attribute is, whole or not; nothing for a symbol and for what is no number.
std::optional<double> number_of(const Attribute& attribute);
bool holds(const Condition& condition, const Attribute& value);
// "64 or 128", "> 0.0"
std::string wanted_text(const Condition& condition);

}  // namespace weft
