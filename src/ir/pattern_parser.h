#pragma once

// Reads one pattern; parse.h reads whole texts.

#include <memory>

#include "ir/graph_cursor.h"
#include "ir/pattern.h"

namespace weft {

// Reads from after the word `pattern` to after its last `}`. UserError with line and column when the text is not a
// pattern, or when the pattern breaks a rule of broken_rule. An op that is not in the table is kept, as in graphs.
std::shared_ptr<Pattern> parse_pattern(GraphCursor& cursor, const OpTable& ops);

}  // namespace weft
