#include "ir/meta_evaluator.h"

namespace weft {

Values MetaEvaluator::evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool) {
  Values results;
  for (Meta& meta : infer_results(op, ops(), operand_metas(operands), attributes))
    results.push_back(Value::of_meta(*this, std::move(meta)));
  return results;
}

std::vector<std::optional<Meta>> operand_metas(const Values& operands) {
  std::vector<std::optional<Meta>> metas;
  for (const Value& operand : operands)
    metas.push_back(operand.present() ? std::optional(operand.meta()) : std::nullopt);
  return metas;
}

}  // namespace weft
