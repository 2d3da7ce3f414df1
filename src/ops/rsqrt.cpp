#include "ops/rsqrt.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value rsqrt(const Value& x, CallSite site) { return call(site, "rsqrt", {x}, {})[0]; }

}  // namespace weft

OP(rsqrt) {
  op.schema("rsqrt(Tensor x) -> Tensor").function(&weft::rsqrt);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "rsqrt"); });
  op.costs(kDivisionCost + kSquareRootCost);
  op.sample({{"x", {6, 41}, std::nullopt, Fill::positive}});
  op.sample({{"x", {0, 8}, std::nullopt, Fill::positive}});
}
