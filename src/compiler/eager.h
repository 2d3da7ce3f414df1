#pragma once

// Runs each op at once, on concrete Values, through the same choice of kernels as a compiled graph. `native` of a
// composite is its meaning, run the same way. With `--enforce-eager` this is the engine's whole forward pass; results
// are bit-identical to the compiled ones.

#include "compiler/context.h"

namespace weft {

class EagerEvaluator : public Evaluator {
 public:
  // `range` is the token range the choice of kernels is made for, as in compiled mode.
  EagerEvaluator(const Context& context, TokenRange range) : Evaluator(context.ops), context_(context), range_(range) {}

  Value value(Tensor tensor) { return Value::concrete(*this, std::move(tensor)); }
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;

 private:
  const Context& context_;
  TokenRange range_;
};

}  // namespace weft
