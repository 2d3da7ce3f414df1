#pragma once

// One of a model's two graphs, traced from the model's code.

#include "compiler/run/guard_evaluation.h"
#include "engine/compile/builders.h"

namespace weft {

struct TracedGraph {
  std::shared_ptr<Graph> graph;
  std::vector<TracedParam> params;
  std::vector<SizeBranch> branches;
};

// The inputs of tracing. Everything that they refer to must outlive the functions that trace with them.
struct TraceInputs {
  const OpTable& ops;
  const ModelFacts& facts;
  const ModelDefinition& definition;
  Weights& weights;
  std::int64_t max_tokens = 0;  // the upper bound of the symbols
};

// `function` is the definition's forward or head; `sizes` are numbers that replace symbols.
TracedGraph trace_graph(const TraceInputs& inputs, const char* name, const std::function<Values(Builder&)>& function,
                        const Bindings& sizes = {});

// Evaluates the guards of a graph that trace_graph made without `sizes`.
GuardEvaluation evaluate_guards(const TraceInputs& inputs, const TracedGraph& traced,
                                const std::function<Values(Builder&)>& function);

}  // namespace weft
