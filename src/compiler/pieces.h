#pragma once

// What each piece of a split graph runs: calls of kernels, and functions generated for the rest.

#include <map>
#include <string>

#include "codegen/find_regions.h"
#include "compiler/context.h"
#include "ir/graph.h"

namespace weft {

// By piece. The graph must outlive it.
using PieceSchedules = std::map<std::string, Schedule>;

// Which row programs the pieces are made of, before anything is compiled.
PieceSchedules schedule_pieces(const Graph& split);

// The schedules with their functions compiled into the Context. Where there can be none the pieces run op by op, with
// one warning in the life of the Context; with --require-codegen that is a UserError, and so is a native node that no
// function can compute, unless it only moves data.
PieceSchedules generate_pieces(const Graph& split, const Context& context);

}  // namespace weft
