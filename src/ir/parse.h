#pragma once

// Reads graphs and patterns from text. The grammar is in docs/graph-text.md; display(parse(t)) == t for text that
// display made.
//
// A mistake is a UserError with line, column, what was expected and what was found. An op that the table does not hold
// parses (the verifier refuses it); result types that the text leaves out are inferred, and a disagreement is an error.

#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "ir/pattern.h"

namespace weft {

// A graph with its pieces, or a pattern.
using Definition = std::variant<std::shared_ptr<Graph>, std::shared_ptr<Pattern>>;

// All definitions, in order. At most 64 MB. `source` names the text in messages, e.g. a file. A `piece` or `splitting`
// definition belongs to the graph that follows it. Patterns of one text have different names.
std::vector<Definition> parse_definitions(std::string_view text, const OpTable& ops, std::string_view source);

// The graphs alone; patterns are read, and left out.
std::vector<std::shared_ptr<Graph>> parse_graphs(std::string_view text, const OpTable& ops, std::string_view source);

// Text that holds exactly one graph.
std::shared_ptr<Graph> parse_graph(std::string_view text, const OpTable& ops, std::string_view source = "text");

}  // namespace weft
