#include "ops/div.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value div(const Value& x, const Value& y, CallSite site) { return call(site, "div", {x, y}, {})[0]; }

}  // namespace weft

OP(div) {
  op.schema("div(Tensor x, Tensor y) -> Tensor").function(&weft::div);
  op.gives([](const OpRequest& request) { return broadcast_rule(request, "div"); });
  op.costs(kDivisionCost);
  op.sample({{"x", {5, 33}}, {"y", {5, 33}, std::nullopt, Fill::positive}});
  op.sample({{"x", {3, 4, 8}}, {"y", {8}, std::nullopt, Fill::positive}});
  op.sample({{"x", {2, 7}}, {"y", {2, 1}, std::nullopt, Fill::positive}});
}
