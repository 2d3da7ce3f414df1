#include "ops/log1p.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value log1p(const Value& x, CallSite site) { return call(site, "log1p", {x}, {})[0]; }

}  // namespace weft

OP(log1p) {
  op.schema("log1p(Tensor x) -> Tensor").function(&weft::log1p);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "log1p"); });
  op.costs(kExpCost);
  op.sample({{"x", {6, 41}, std::nullopt, Fill::positive}});
  op.sample({{"x", {0, 8}}});
}
