#pragma once

// Cuts a piece into row programs and calls. Nodes chosen as `native` that work on the same rows and use each other's
// values become one function. Linears, attention and nodes with a chosen kernel stay calls.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "codegen/build_row_program.h"

namespace weft {

// The row program is built again for each node that joins a region, so the time grows with the square of this.
inline constexpr std::size_t kMostNodesOfRegion = 256;

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
  // The order keeps the meaning of the graph's order: operands are before users, and readers of a value are before the
  // kernel that overwrites it. Views that only regions read through are left out.
  std::vector<ScheduledStep> steps;
  std::vector<RowRefusal> refusals;
};

// The piece is at stage lowered and must outlive the schedule.
Schedule schedule_piece(const Graph& piece);

// The schedule of another piece, whose nodes equal those of `other` except for numbers
// (has_equal_nodes_but_for_scalars). It takes over the regions that `schedule` has for `other`, without searching
// again. Returns nothing if a region cannot be built for `piece`, or has other inputs or outputs.
std::optional<Schedule> schedule_piece_like(const Graph& piece, const Graph& other, const Schedule& schedule);

// The schedule without regions: every node is a step of its own.
Schedule schedule_as_written(const Graph& piece);

}  // namespace weft
