#pragma once

// Infers the result types of an op's meaning. Its Values have a meta and no data.

#include "ir/op.h"

namespace weft {

class MetaEvaluator : public Evaluator {
 public:
  using Evaluator::Evaluator;
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;
};

// The metas of operands, nullopt for absent ones.
std::vector<std::optional<Meta>> operand_metas(const Values& operands);

}  // namespace weft
