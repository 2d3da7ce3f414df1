#pragma once

// From nodes of a graph at stage lowered to a row program. The nodes are primitives whose provider is `native`; the
// rows are those of their dim 0, the columns all other dims, flattened. Each value is f32 in the program and is rounded
// to its dtype where the graph has it in memory, so that the function gives the bits of the nodes run one by one.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "ir/graph.h"

namespace weft {

struct RowRegion {
  std::vector<const Node*> nodes;          // in the graph's order
  std::vector<const GraphValue*> inputs;   // what the function reads, views as they are: its first buffers
  std::vector<const GraphValue*> outputs;  // what others use: the buffers behind them
  RowProgram program;                      // finished
  // What lies in buffers between those of inputs and outputs, one number each (lift_scalars.h).
  std::vector<float> scalars = {};
};

// Whether a function can compute this primitive where it stands, by itself if need be.
bool is_row_node(const Node& primitive);

// Whether a node is native, and one that a row program may be made of; what it computes is looked at by
// build_row_program.
bool is_row_candidate(const Node& node);

// `nodes` in the graph's order. Nothing, and in `reason` what stands against it, where they are no row program:
//   [amax_0] is the largest in groups of values that have signs
std::optional<RowRegion> build_row_program(std::span<const Node* const> nodes, std::string& reason);

}  // namespace weft
