#pragma once

// Parses the text right of `key=` in a node: an integer or dim expression, a float (with `.`, `e`, `inf` or `nan`),
// true, false, none, a "string", a dtype, an enum word, or a list [...] of these.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "tensor/attribute.h"

namespace weft {

// Leaves `position` directly after the value. A bare word is a symbol if it is part of an expression or if `symbols`
// has it. With `symbols` null, it is a symbol if it is spelled as the tracer spells symbols (`s` and digits) or starts
// with `?`. Any other bare word is an enum word. If the op's schema is known, conform() of schema.h makes the final
// choice. Throws ParseError (a UserError) with line and column. Lists nest at most 32 deep.
Attribute parse_attribute(std::string_view text, std::size_t& position, const std::set<std::string>* symbols = nullptr);
// The whole text must be one value.
Attribute parse_attribute(std::string_view text);

}  // namespace weft
