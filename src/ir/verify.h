#pragma once

// What is legal at each stage. Run after every pass in tests and debug builds, and on every graph that comes as text.
//
//   every stage   operands are defined before use; use lists agree; each op is known, its arguments fit its schema, and
//   its
//                 result types are what it infers; dim 0 of a result is a number or the governing symbol; every symbol
//                 can be read off an input
//   traced        `.maybe_inplace` only on ops that allow it
//   pure          no `.maybe_inplace`, no provider, nothing written over
//   lowered       every node has a provider; each symbol has bounds; an argument is
//                 written over only where the op donates it, only if it is a value of the graph or a donated input, and
//                 nothing reads its old value afterwards; KV pages that are returned live in a donated input
//   split         the graph holds calls alone; every piece is legal at stage lowered and agrees with its calls

#include <optional>
#include <string>

#include "ir/inferred_results.h"

namespace weft {

// The first breach, naming the node and its line; nothing when the graph is legal.
std::optional<std::string> find_breach(const Graph& graph, const OpTable& ops);

// InternalError when a pass left an illegal graph. `inferred` goes from pass to pass.
void verify_after_pass(const Graph& graph, const OpTable& ops, std::string_view pass, InferredResults& inferred);

// UserError when a graph that came as text is illegal.
void verify_text(const Graph& graph, const OpTable& ops, std::string_view source);

}  // namespace weft
