#pragma once

// Builds a row program from nodes of a graph at stage lowered. The nodes are primitives whose provider is `native`. Dim
// 0 of a tensor counts the rows; all other dims, flattened, are the columns. Each value is f32 in the program and is
// rounded to its dtype where the graph stores it in memory, so the function computes the same bits as the nodes run one
// by one.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "ir/graph.h"

namespace weft {

struct RowRegion {
  std::vector<const Node*> nodes;          // in the graph's order
  std::vector<const GraphValue*> inputs;   // what the function reads (views included): its first buffers
  std::vector<const GraphValue*> outputs;  // what other nodes use: the buffers after the inputs
  RowProgram program;                      // finished
  // The contents of the buffers between inputs and outputs, one number each (lift_scalars.h).
  std::vector<float> scalars = {};
};

// Whether a function can compute this primitive in its graph, if necessary a function of this node alone.
bool is_row_node(const Node& primitive);

// Whether a node is native and of a kind that row programs support. build_row_program checks what the node computes.
bool is_row_candidate(const Node& node);

// `nodes` are in the graph's order. If they cannot be a row program, returns nothing and writes why to `reason`:
//   [amax_0] is the largest in groups of values that have signs
std::optional<RowRegion> build_row_program(std::span<const Node* const> nodes, std::string& reason);

}  // namespace weft
