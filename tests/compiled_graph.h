#pragma once

// One graph, compiled and run, and the two it is held against: the same graph op by op over chosen kernels, and the
// same graph as its meaning. All three leave the graph and the inputs as they are.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "ir/graph.h"

namespace weft {

// A graph of one call of the op: an input for every operand that is there, KV pages donated.
std::shared_ptr<Graph> graph_of_call(const Op& op, std::span<const Tensor> operands, const Attributes& attributes,
                                     const OpTable& ops);

// By result; each in memory of its own. The graph may be of any stage before split; `range` is that of its rows.
std::vector<Tensor> run_compiled(const Graph& graph, const Context& context, TokenRange range,
                                 std::span<const Tensor> inputs, const PassRunnerOptions& options = {});
std::vector<Tensor> run_eagerly(const Graph& graph, const Context& context, TokenRange range,
                                std::span<const Tensor> inputs);
std::vector<Tensor> run_interpreted(const Graph& graph, const Context& context, std::span<const Tensor> inputs);

// Whether an op of the graph sums in an order that is its kernel's: then the meaning gives other bits.
bool sums_in_free_order(const Graph& graph);

// "" when all results are the same bits, a NaN for a NaN; else the first that differs, and how. What follows from
// memory that nobody wrote is no result.
std::string first_difference(const Graph& graph, std::span<const Tensor> wanted, std::span<const Tensor> came);

// Compiles the graph, and holds it against its meaning where that has one result, else against the same op by op. As
// many ranks run it as its groups have, each a thread with a Context of its own; what goes into an op over ranks then
// differs from rank to rank. What first_difference says; of several ranks for the lowest that differs.
std::string compiled_difference(const Graph& graph, const Context& context, TokenRange range,
                                std::span<const Tensor> inputs, const PassRunnerOptions& options = {});

}  // namespace weft
