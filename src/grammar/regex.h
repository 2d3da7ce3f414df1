#pragma once

// Regular expressions as expressions of a grammar.
//
// The syntax is that of RE2 and of JSON Schema as far as both agree: characters, classes, \d \w \s (of ASCII) and their
// complements, "." (not a line feed), groups, alternation, * + ? {m,n}, ^ and $ (also \A \z) where the text begins or
// ends, \xHH and \uHHHH. UserError that names the construct for any other: look-around, back references, \b, flags,
// \p{..}, and for what only NUL matches. Captures and laziness change nothing, since only the set of matching texts
// counts.

#include <string_view>

#include "grammar/grammar.h"

namespace weft::grammar {

// The texts that match from their beginning to their end.
Expression read_regex(std::string_view pattern);
// The texts in which a match is somewhere: the meaning of "pattern" in JSON Schema.
Expression read_search_regex(std::string_view pattern);

}  // namespace weft::grammar
