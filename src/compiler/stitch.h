#pragma once

// Flattens a split graph into a Plan: the calls one after another, views resolved to offsets, results that live in an
// argument's storage given its slot.

#include "compiler/context.h"
#include "ir/graph.h"
#include "runtime/plan.h"

namespace weft {

Plan stitch(const Graph& split, const Context& context);

}  // namespace weft
