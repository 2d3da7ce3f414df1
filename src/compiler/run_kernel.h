#pragma once

// One call of one kernel on concrete tensors: fresh results, copies of what the kernel would write over unless the
// caller gives it away, scratch for the call. Shared by the eager evaluator and the interpreter.

#include "compiler/context.h"

namespace weft {

// `give_away`: the kernel may write over its donated operands; otherwise those are copied first.
std::vector<Tensor> run_kernel(const Op& op, const Kernel& kernel, std::span<const Value> operands,
                               const Attributes& attributes, const std::vector<Meta>& results, bool give_away,
                               ThreadPool& threads);

// The result of a view op: the operand's storage at an offset.
Tensor run_view(const Op& op, const Tensor& operand, const Attributes& attributes, const Meta& result);

}  // namespace weft
