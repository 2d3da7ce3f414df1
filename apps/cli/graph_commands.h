#pragma once

// What is done with graph text: reading, running passes over it, running it on tensors.

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/tensor_file.h"
#include "compiler/pipeline.h"
#include "io/checkpoint.h"
#include "ir/parse.h"

namespace weft {

// All definitions of a file; `-` is not read. UserError as parse.h says, and when there is none.
std::vector<Definition> read_definitions(const std::string& path, const OpTable& ops);

// The graphs among them. UserError when there is none.
std::vector<std::shared_ptr<Graph>> read_graphs(const std::string& path, const OpTable& ops);

// Every pass up to the end of a stage, or of that of --compile-to if it is earlier; the graph begins at its own.
// UserError when it is beyond the stage already.
std::vector<PassRecord> run_passes_to(Graph& graph, const Context& context, Stage stage);

// Only these, in this order. UserError for an unknown name and for a stage that does not fit.
std::vector<PassRecord> run_named_passes(Graph& graph, const Context& context, const std::vector<std::string>& names);

// The Plan of a graph, for the bounds of its governing symbol; null, and the graph at its stage, with --compile-to.
std::shared_ptr<const Plan> compile_graph(Graph& graph, const Context& context);

// The name of each result: that of its value, or its number where two results are one value or a value has no name.
std::vector<std::string> result_names(const Graph& graph);

// Compiles the graph and runs it, or runs it op by op: as it is with --enforce-eager, else as --compile-to left it. KV
// pages that the file lacks are zeroed, as many as the batch names; params that the file lacks come from the checkpoint
// by their keys, packed as their type says. UserError when an input is missing or of another type.
std::vector<Tensor> run_graph_text(const std::shared_ptr<Graph>& graph, const Context& context,
                                   const TensorFile& inputs, const std::optional<Checkpoint>& checkpoint);

}  // namespace weft
