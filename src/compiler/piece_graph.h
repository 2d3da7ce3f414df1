#pragma once

// Finds the pieces of split graphs by name, and makes a graph of one piece.

#include <memory>
#include <span>
#include <string>

#include "compiler/pipeline.h"

namespace weft {

// Whether the word names the piece: p2 or 2, in every graph, or forward.p2.
bool names_piece(const std::string& word, const std::string& graph, const std::string& piece);

// Whether --eager-piece names it.
bool is_eager_piece(const CodeOptions& options, const std::string& graph, const std::string& piece);

// UserError, `[option] ...`, for a word that names no piece of the records; the message lists the pieces.
void check_piece_names(const std::string& option, const Words& words, std::span<const CompileRecord> records);

// The graph that one call of a piece runs, at stage lowered, which can be printed, read back and run: params keep the
// keys of that call, and inputs that the piece overwrites are donated. `call` is a node of `split`.
std::shared_ptr<Graph> standalone_piece(const Graph& split, const Node& call);

// The first call of the piece; null when there is none.
const Node* first_call(const Graph& split, const std::string& piece);

}  // namespace weft
