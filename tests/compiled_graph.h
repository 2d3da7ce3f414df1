#pragma once

// One graph, compiled and run, and the two references that it is compared with: the same graph op by op with chosen
// kernels, and the same graph as its meaning. None of the three changes the graph or the inputs.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "ir/graph.h"

namespace weft {

// A graph of one call of the op, with an input for every operand that is present; KV pages are donated.
std::shared_ptr<Graph> graph_of_call(const Op& op, std::span<const Tensor> operands, const Attributes& attributes,
                                     const OpTable& ops);

// The results, each in its own memory. The graph may be at any stage before split; `range` is that of its rows.
std::vector<Tensor> run_compiled(const Graph& graph, const Context& context, TokenRange range,
                                 std::span<const Tensor> inputs, const PassRunnerOptions& options = {});
std::vector<Tensor> run_eagerly(const Graph& graph, const Context& context, TokenRange range,
                                std::span<const Tensor> inputs);
std::vector<Tensor> run_interpreted(const Graph& graph, const Context& context, std::span<const Tensor> inputs);

// Whether an op of the graph sums in its kernel's own order: the meaning then has other bits.
bool sums_in_free_order(const Graph& graph);

// "" if all results have the same bits, where all NaNs are equal; else the first difference. Results that depend on
// memory that was never written are ignored.
std::string first_difference(const Graph& graph, std::span<const Tensor> wanted, std::span<const Tensor> came);

// Compiles the graph and compares it with its meaning if that has one result, else with the same graph op by op. It
// runs on as many ranks as its groups have; each is a thread with its own Context, and inputs of ops over ranks differ
// from rank to rank. Returns the text of first_difference for the lowest rank that differs.
std::string compiled_difference(const Graph& graph, const Context& context, TokenRange range,
                                std::span<const Tensor> inputs, const PassRunnerOptions& options = {});

}  // namespace weft
