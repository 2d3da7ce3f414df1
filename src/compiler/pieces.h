#pragma once

// What each piece of a split graph runs: calls of kernels, and functions generated for the rest.

#include <map>
#include <memory>
#include <string>

#include "codegen/find_regions.h"
#include "compiler/context.h"
#include "ir/graph.h"

namespace weft {

struct PieceCode {
  std::shared_ptr<const Graph> graph;  // the piece with the meanings of its native ops written out
  Schedule schedule;                   // of that
};
using PieceSchedules = std::map<std::string, PieceCode>;  // by piece

// For a piece, or a graph at stage lowered that is none.
PieceCode schedule_piece(const Graph& piece, PassContext& passes);

// Whether native ops become generated functions: with --cc.backend=eager they do not, nor where nothing compiles them
// (GeneratedKernels::problem).
bool generates_code(const Context& context);

// UserError where --require-codegen asks for what no piece can have.
void check_required_code(const Context& context);
// Says it, once for the Context, where code is to be generated and there is nothing that generates it.
void warn_of_missing_compiler(const Context& context);

// Which row programs the pieces are made of, before anything is compiled; pieces that differ only in scalars have the
// same (codegen/lift_scalars.h).
PieceSchedules schedule_pieces(const Graph& split, PassContext& passes, ThreadPool& threads);

// Whether the node fills or copies memory and computes nothing.
bool only_moves(const Node& node);

// The schedules with their functions compiled into the Context; a piece of --eager-piece has none. Where there can be
// none the pieces run op by op, with one warning in the life of the Context; with --require-codegen that is a
// UserError, and so is a native node that no function can compute, unless it only moves data.
PieceSchedules generate_pieces(const Graph& split, const Context& context, TokenRange range);

}  // namespace weft
