#include "ops/exp.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value exp(const Value& x, CallSite site) { return call(site, "exp", {x}, {})[0]; }

}  // namespace weft

OP(exp) {
  op.schema("exp(Tensor x) -> Tensor").function(&weft::exp);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "exp"); });
  op.costs(kExpCost);
  op.sample({{"x", {6, 41}}});
  op.sample({{"x", {0, 8}}});
}
