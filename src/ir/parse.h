#pragma once

// Reads graphs and patterns from text. The grammar is in docs/graph-text.md; display(parse(t)) == t when display made
// the text t.
//
// A mistake is a UserError with the line, the column, the expected text and the text found. An op that is not in the
// table can be parsed; the verifier refuses it. Result types that are not in the text are inferred; a given type that
// differs from the inferred one is an error.

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
// definition belongs to the graph that follows it. The patterns of one text must have different names.
std::vector<Definition> parse_definitions(std::string_view text, const OpTable& ops, std::string_view source);

// Returns only the graphs; patterns are parsed and dropped.
std::vector<std::shared_ptr<Graph>> parse_graphs(std::string_view text, const OpTable& ops, std::string_view source);

// Text that holds exactly one graph.
std::shared_ptr<Graph> parse_graph(std::string_view text, const OpTable& ops, std::string_view source = "text");

}  // namespace weft
