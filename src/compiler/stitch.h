#pragma once

// Flattens a split graph into a Plan: calls are steps in order, views become offsets, a result in an argument's storage
// gets that argument's slot, and generated functions replace the nodes that they compute.

#include <vector>

#include "compiler/pieces.h"
#include "runtime/plan.h"

namespace weft {

// One call of a piece: the steps that it became, and the locations of its operands and results.
struct StitchedCall {
  const Node* node = nullptr;    // of the split graph
  const Graph* piece = nullptr;  // likewise
  std::size_t first_step = 0;
  std::size_t last_step = 0;  // one past the last
  std::vector<PlanView> operands = {};
  std::vector<PlanView> results = {};
};

// The calls, in order, of the Plan that stitch makes from the same arguments.
std::vector<StitchedCall> stitched_calls(const Graph& split, const PieceSchedules& schedules, const Context& context);

Plan stitch(const Graph& split, const PieceSchedules& schedules, const Context& context);

}  // namespace weft
