#pragma once

// Commands on graph text: read it, run passes on it, and run it on tensors.

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/tensor_file.h"
#include "compiler/pipeline.h"
#include "io/checkpoint.h"
#include "ir/parse.h"

namespace weft {

// Returns all definitions of a file; `-` does not mean standard input. Throws UserError as parse.h describes, and if
// there is no definition.
std::vector<Definition> read_definitions(const std::string& path, const OpTable& ops);

// Returns only the graphs of a file. Throws UserError if there is none.
std::vector<std::shared_ptr<Graph>> read_graphs(const std::string& path, const OpTable& ops);

// Runs all passes from the graph's stage to the end of `stage`, or of the stage of --compile-to if that is earlier.
// Throws UserError if the graph is already past the stage.
std::vector<PassRecord> run_passes_to(Graph& graph, const Context& context, Stage stage);

// Runs only these passes, in this order. Throws UserError for an unknown name and for a stage that does not fit.
std::vector<PassRecord> run_named_passes(Graph& graph, const Context& context, const std::vector<std::string>& names);

// Returns the Plan of a graph, for the bounds of its governing symbol. With --compile-to it returns null and leaves the
// graph at that stage.
std::shared_ptr<const Plan> compile_graph(Graph& graph, const Context& context);

// Returns the name of each result: the name of its value, or its index if two results are the same value or the value
// has no name.
std::vector<std::string> result_names(const Graph& graph);

// Compiles and runs the graph, or runs it op by op: unchanged with --enforce-eager, or as --compile-to left it. KV
// pages that the file does not have are zeroed, as many as the batch refers to. Params that the file does not have are
// loaded from the checkpoint by their keys, with the packing of their types. Throws UserError if an input is missing or
// has another type.
std::vector<Tensor> run_graph_text(const std::shared_ptr<Graph>& graph, const Context& context,
                                   const TensorFile& inputs, const std::optional<Checkpoint>& checkpoint);

}  // namespace weft
