#pragma once

// Reads what stands right of `key=` in a node: an integer or dim expression, a float (with `.`, `e`, `inf` or `nan`),
// true, false, none, a "string", a dtype, an enum word, or a list [...] of these.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "tensor/attribute.h"

namespace weft {

// Leaves `position` right behind the value. A bare word is a symbol when it stands in an expression or when `symbols`
// has it (null: when it is spelled as the tracer spells symbols, `s` and digits, or with `?`); otherwise it is an enum
// word. schema.h's conform settles the rest for an op whose schema is known. ParseError (a UserError) with line and
// column; lists nest at most 32 deep.
Attribute parse_attribute(std::string_view text, std::size_t& position, const std::set<std::string>* symbols = nullptr);
// The whole text is one value.
Attribute parse_attribute(std::string_view text);

}  // namespace weft
