#pragma once

// The rules for graphs at each stage. The verifier runs after each pass in tests and debug builds, and on each graph
// that is read from text.
//
//   every stage   operands are defined before use; use lists agree; each op is known, its arguments fit its schema, and
//                 its result types are those it infers; dim 0 of a result is a number, or the governing symbol or a
//                 multiple of it (the rows of the k experts of each token); each symbol is a dim of an input by
//                 itself, so that a run can read it (of a piece: part of a dim); KV pages that a graph returns are the
//                 result of a node, or stored in a donated input
//   traced        `.maybe_inplace` only on ops that allow it; nothing uses a donated value again
//   pure          no `.maybe_inplace`, no provider, and no node overwrites an operand
//   lowered       each node has a provider; each symbol has bounds; a kernel overwrites an argument only if the op
//                 donates it, it is a value of the graph or a donated input, and nothing reads its old value
//                 afterwards
//   split         the graph contains only calls; each piece is legal at stage lowered and agrees with its calls

#include <optional>
#include <string>

#include "ir/inferred_results.h"

namespace weft {

// Returns the first broken rule, with the node and its line; nothing when the graph is legal.
std::optional<std::string> find_breach(const Graph& graph, const OpTable& ops);

// InternalError when a pass left an illegal graph. The caller passes the same `inferred` after each pass.
void verify_after_pass(const Graph& graph, const OpTable& ops, std::string_view pass, InferredResults& inferred);

// UserError when a graph that was read from text is illegal.
void verify_text(const Graph& graph, const OpTable& ops, std::string_view source);

}  // namespace weft
