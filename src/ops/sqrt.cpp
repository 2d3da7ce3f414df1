#include "ops/sqrt.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value sqrt(const Value& x, CallSite site) { return call(site, "sqrt", {x}, {})[0]; }

}  // namespace weft

OP(sqrt) {
  op.schema("sqrt(Tensor x) -> Tensor").function(&weft::sqrt);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "sqrt"); });
  op.costs(kSquareRootCost);
  op.sample({{"x", {6, 41}, std::nullopt, Fill::positive}});
  op.sample({{"x", {0, 8}, std::nullopt, Fill::positive}});
}
