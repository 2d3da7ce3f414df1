#include "ops/reciprocal.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value reciprocal(const Value& x, std::optional<double> of_zero, CallSite site) {
  Attribute instead;
  if (of_zero) instead = *of_zero;
  return call(site, "reciprocal", {x}, {{"of_zero", instead}})[0];
}

}  // namespace weft

OP(reciprocal) {
  op.schema("reciprocal(Tensor x, float? of_zero=None) -> Tensor").function(&weft::reciprocal);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "reciprocal"); });
  op.costs(kDivisionCost);
  op.sample({{"x", {6, 41}, std::nullopt, Fill::positive}});
  op.sample({{"x", {3, 8}, std::nullopt, Fill::zero}}, {{"of_zero", 0.0}});
}
