#pragma once

// The code of each piece of a split graph: calls of kernels, and generated functions for all other nodes.

#include <map>
#include <memory>
#include <string>

#include "codegen/find_regions.h"
#include "compiler/context.h"
#include "ir/graph.h"

namespace weft {

struct PieceCode {
  std::shared_ptr<const Graph> graph;  // the piece with the meanings of its native ops written out
  Schedule schedule;                   // of `graph`
};
using PieceSchedules = std::map<std::string, PieceCode>;  // by piece

// `piece` is a piece of a split graph, or a whole graph at stage lowered.
PieceCode schedule_piece(const Graph& piece, PassContext& passes);

// Whether native ops become generated functions. They do not with --cc.backend=eager, nor where nothing can compile
// them (GeneratedKernels::problem). Stored Plans have theirs as machine code.
bool generates_code(const Context& context);

// UserError where --require-codegen is set but no piece can have generated code.
void check_required_code(const Context& context);
// Warns, once for each Context, where code should be generated but nothing can compile it.
void warn_of_missing_compiler(const Context& context);

// The row programs of each piece, before anything is compiled; pieces that differ only in scalars have the same row
// programs (codegen/lift_scalars.h).
PieceSchedules schedule_pieces(const Graph& split, PassContext& passes, ThreadPool& threads);

// Whether the node fills or copies memory and computes nothing.
bool only_moves(const Node& node);

// The schedules, after their functions were compiled into the Context; a piece of --eager-piece has no functions. Where
// code cannot be generated, the pieces run op by op, with one warning for each Context; with --require-codegen that is
// a UserError, and so is a native node that no function can compute, unless it only moves data.
PieceSchedules generate_pieces(const Graph& split, const Context& context, TokenRange range);

}  // namespace weft
