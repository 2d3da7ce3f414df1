#pragma once

// Flattens a split graph into a Plan: the calls one after another, views resolved to offsets, results that live in an
// argument's storage given its slot, generated functions in the place of the nodes they compute.

#include <vector>

#include "compiler/pieces.h"
#include "runtime/plan.h"

namespace weft {

// One call of a piece: which steps it became, and where what it takes and gives lies.
struct StitchedCall {
  const Node* node = nullptr;    // of the split graph
  const Graph* piece = nullptr;  // likewise
  std::size_t first_step = 0;
  std::size_t last_step = 0;  // one past the last
  std::vector<PlanView> operands = {};
  std::vector<PlanView> results = {};
};

// The calls of the Plan that stitch makes of the same, in order.
std::vector<StitchedCall> stitched_calls(const Graph& split, const PieceSchedules& schedules, const Context& context);

Plan stitch(const Graph& split, const PieceSchedules& schedules, const Context& context);

}  // namespace weft
