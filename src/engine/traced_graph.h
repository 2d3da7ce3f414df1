#pragma once

// One of a model's two graphs, as the model's code gives it.

#include "compiler/guard_evaluation.h"
#include "engine/builders.h"

namespace weft {

struct TracedGraph {
  std::shared_ptr<Graph> graph;
  std::vector<TracedParam> params;
  std::vector<SizeBranch> branches;
};

// What a graph is traced from. All that it refers to must outlive what traces with it.
struct TracedModel {
  const OpTable& ops;
  const ModelFacts& facts;
  const ModelDefinition& definition;
  Weights& weights;
  bool is_gguf = false;
  std::int64_t max_tokens = 0;  // the end of the symbols' ranges
};

// `function` is the definition's forward or head; `sizes` are numbers to take in the place of symbols.
TracedGraph trace_graph(const TracedModel& model, const char* name, const std::function<Values(Builder&)>& function,
                        const Bindings& sizes = {});

// Of what trace_graph gave without `sizes`.
GuardEvaluation evaluate_guards(const TracedModel& model, const TracedGraph& traced,
                                const std::function<Values(Builder&)>& function);

}  // namespace weft
