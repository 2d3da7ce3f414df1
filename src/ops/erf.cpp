#include "ops/erf.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value erf(const Value& x, CallSite site) { return call(site, "erf", {x}, {})[0]; }

}  // namespace weft

OP(erf) {
  op.schema("erf(Tensor x) -> Tensor").function(&weft::erf);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "erf"); });
  op.costs(kErfCost);
  op.sample({{"x", {6, 41}}});
  op.sample({{"x", {0, 8}}});
}
