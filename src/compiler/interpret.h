#pragma once

// The oracle: every op is its meaning, op by op down to primitive reference kernels, whatever was chosen for it.

#include "compiler/context.h"
#include "ir/graph.h"

namespace weft {

class Interpreter : public Evaluator {
 public:
  explicit Interpreter(const Context& context) : Interpreter(context, *context.threads, context.groups) {}
  // One of several ranks that share a Context, with threads of its own.
  Interpreter(const Context& context, ThreadPool& threads, const RankGroups& groups)
      : Evaluator(context.ops), context_(context), threads_(threads), groups_(groups) {}

  Value value(Tensor tensor) override { return Value::concrete(*this, std::move(tensor)); }
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;

 private:
  const Context& context_;
  ThreadPool& threads_;
  const RankGroups& groups_;
};

// Runs a graph of any stage through an evaluator, op by op; at stage lowered an op's chosen provider is ignored here
// and decided by the evaluator. `inputs` in the order of the graph's inputs. Values die after their last use; KV pages
// that the graph owns are then given away, as copying a cache for every layer would take its size times the layers.
Values run_graph(const Graph& graph, Evaluator& evaluator, const Values& inputs);

}  // namespace weft
