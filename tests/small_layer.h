#pragma once

// One small transformer layer with attention over a KV cache, as a traced graph, and inputs for it.

#include "ir/graph.h"
#include "tests/test_context.h"

namespace weft {

// Rows s0 of width 32; 2 heads, 1 key/value head of 16; f32 pages of 4 tokens. Its norms differ only in epsilon, so
// generated code for them is one function with an argument.
std::shared_ptr<Graph> small_layer(const Context& context);

struct LayerInputs {
  std::vector<Tensor> tensors;  // in the order of the graph's inputs
  // Fresh storage, so that a run may write over it.
  Tensor copy(std::size_t index) const;
  std::vector<Tensor> copies() const;
};

// For any graph: one sequence of `rows` new tokens, and that number of rows for every symbol.
LayerInputs layer_inputs(const Graph& graph, int rows);

}  // namespace weft
