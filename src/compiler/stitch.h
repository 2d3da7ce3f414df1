#pragma once

// Flattens a split graph into a Plan: the calls one after another, views resolved to offsets, results that live in an
// argument's storage given its slot, generated functions in the place of the nodes they compute.

#include "compiler/pieces.h"
#include "runtime/plan.h"

namespace weft {

Plan stitch(const Graph& split, const PieceSchedules& schedules, const Context& context);

}  // namespace weft
