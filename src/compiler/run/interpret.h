#pragma once

// The oracle: it runs every op as its meaning, down to the reference kernels of primitives, whatever provider was
// chosen.

#include "compiler/context.h"
#include "ir/graph.h"

namespace weft {

class Interpreter : public Evaluator {
 public:
  explicit Interpreter(const Context& context) : Interpreter(context, *context.threads, context.groups) {}
  // For one of several ranks that share a Context but have threads of their own.
  Interpreter(const Context& context, ThreadPool& threads, const RankGroups& groups)
      : Evaluator(context.ops), context_(context), threads_(threads), groups_(groups) {}

  Value value(Tensor tensor) override { return Value::concrete(*this, std::move(tensor)); }
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;

 private:
  const Context& context_;
  ThreadPool& threads_;
  const RankGroups& groups_;
};

// Runs a graph of any stage through an evaluator, op by op; at stage lowered it ignores the chosen providers, and the
// evaluator decides. `inputs` are in the order of the graph's inputs. A value is freed after its last use. KV pages
// that the graph owns are donated at their last use, as each layer would otherwise copy the whole cache.
Values run_graph(const Graph& graph, Evaluator& evaluator, const Values& inputs);

}  // namespace weft
