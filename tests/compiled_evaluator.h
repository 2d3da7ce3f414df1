#pragma once

// Runs each op as a graph of this single call, compiled to a Plan at the Context's choice and replayed. Calls whose
// types differ only in their rows share one Plan: the rows are a symbol if the op allows it.

#include <map>
#include <memory>
#include <string>

#include "compiler/context.h"
#include "runtime/replay.h"

namespace weft {

// For one thread at a time. The Context must outlive it, with unchanged priorities.
class CompiledEvaluator : public Evaluator {
 public:
  // `range` is that of the rows.
  CompiledEvaluator(const Context& context, TokenRange range)
      : Evaluator(context.ops), context_(context), range_(range) {}

  Value value(Tensor tensor) override { return Value::concrete(*this, std::move(tensor)); }
  // Throws InternalError for `maybe_inplace`: nothing is donated.
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;

  // The count of runs in all Plans; calls without an element run none.
  struct Steps {
    int generated = 0;  // calls of generated functions
    int others = 0;
  };
  const Steps& steps() const { return steps_; }

 private:
  std::shared_ptr<Graph> graph_of_rows(const Op& op, std::span<const Tensor> operands, const Attributes& attributes);
  Replay& program_of(const Op& op, std::span<const Tensor> operands, const Attributes& attributes);

  const Context& context_;
  TokenRange range_;
  std::map<std::string, std::unique_ptr<Replay>> programs_;  // by the graph's canonical text
  Steps steps_;
};

}  // namespace weft
