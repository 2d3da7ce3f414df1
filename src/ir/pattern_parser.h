#pragma once

// Reads one pattern; parse.h reads whole texts.

#include <memory>

#include "ir/graph_cursor.h"
#include "ir/pattern.h"

namespace weft {

// From behind the word `pattern` to behind its last `}`. UserError with line and column when the text is no pattern,
// and when the pattern breaks a rule of broken_rule. An op that the table does not hold is kept, as in graphs.
std::shared_ptr<Pattern> parse_pattern(GraphCursor& cursor, const OpTable& ops);

}  // namespace weft
