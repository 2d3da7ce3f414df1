#pragma once

// Cuts a piece into row programs and what is called as it is: nodes chosen as `native` that work on the same rows and
// hand values to each other become one function. Linears, attention and chosen kernels stay calls.

#include <optional>
#include <string>
#include <vector>

#include "codegen/build_row_program.h"

namespace weft {

// One step of a piece: a node, view or call, or a region.
struct ScheduledStep {
  const Node* node = nullptr;
  int region = -1;  // in Schedule::regions; -1 for a node
};

// A native node that no function computes, and why.
struct RowRefusal {
  const Node* node = nullptr;
  std::string reason;
};

struct Schedule {
  std::vector<RowRegion> regions;
  // In an order that keeps what the graph's order means: operands before users, readers of a value before the kernel
  // that writes over it. Views that only regions look through are left out.
  std::vector<ScheduledStep> steps;
  std::vector<RowRefusal> refusals;
};

// The piece is at stage lowered and must outlive the schedule.
Schedule schedule_piece(const Graph& piece);

// That of another piece whose nodes are the same but for numbers (has_equal_nodes_but_for_scalars), with the regions
// that `schedule` has of `other`: what may be one function is not tried anew. Nothing where one of them cannot be, or
// reads or gives other values.
std::optional<Schedule> schedule_piece_like(const Graph& piece, const Graph& other, const Schedule& schedule);

// The schedule without a region: every node as it is.
Schedule schedule_as_written(const Graph& piece);

}  // namespace weft
