#include "engine/compile/traced_graph.h"

namespace weft {

TracedGraph trace_graph(const TraceInputs& inputs, const char* name, const std::function<Values(Builder&)>& function,
                        const Bindings& sizes) {
  TracedGraph traced{.graph = std::make_shared<Graph>(name, Stage::traced)};
  Trace trace(inputs.ops, *traced.graph);
  TraceBuilder builder(inputs.facts, inputs.definition, inputs.weights, trace, sizes);
  trace.finish(function(builder));
  traced.params = builder.params();
  traced.branches = trace.branches();
  for (const auto& input : traced.graph->inputs())
    if (!input->param && input->meta.is_tensor() && !input->meta.shape.empty())
      if (const std::string symbol = input->meta.shape[0].symbol_name(); !symbol.empty())
        traced.graph->bounds[symbol] = {1, inputs.max_tokens};
  return traced;
}

GuardEvaluation evaluate_guards(const TraceInputs& inputs, const TracedGraph& traced,
                                const std::function<Values(Builder&)>& function) {
  return {traced.graph, traced.branches, [inputs, function, name = traced.graph->name](const Bindings& sizes) {
            return trace_graph(inputs, name.c_str(), function, sizes).graph;
          }};
}

}  // namespace weft
