#include "compiler/eager.h"

#include "base/error.h"
#include "compiler/run_kernel.h"
#include "ir/meta_evaluator.h"

namespace weft {

Values EagerEvaluator::evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool inplace) {
  const std::vector<std::optional<Meta>> metas = operand_metas(operands);
  const std::vector<Meta> results = infer_results(op, ops(), metas, attributes);
  if (op.is_view) return {value(run_view(op, operands[0].tensor(), attributes, results[0]))};
  const Choice choice = select_kernel(context_.kernels, context_.priorities, op.name,
                                      {metas, results, attributes, range_}, context_.options.batch_invariant);
  if (choice.kernel == nullptr && !op.is_primitive()) return op.meaning(*this, operands, attributes);
  const Kernel& kernel = choice.kernel != nullptr ? *choice.kernel : context_.kernel_for(op.name, "native");
  Values values;
  for (Tensor& tensor : run_kernel(op, kernel, operands, attributes, results, inplace, *context_.threads))
    values.push_back(value(std::move(tensor)));
  return values;
}

}  // namespace weft
