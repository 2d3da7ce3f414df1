#include "ops/div_scalar.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value div_scalar(const Value& x, Scalar value, CallSite site) {
  return call(site, "div_scalar", {x}, {{"value", value.value}})[0];
}

}  // namespace weft

OP(div_scalar) {
  op.schema("div_scalar(Tensor x, float(liftable) value) -> Tensor").function(&weft::div_scalar);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "div_scalar"); });
  op.costs(kDivisionCost);
  op.exact([](const Attributes& a) { return is_power_of_two(a.at("value").real()); });
  op.sample({{"x", {4, 37}}}, {{"value", 0.7}});
  op.sample({{"x", {3}}}, {{"value", -3.0}});
  op.sample({{"x", {5, 9}}}, {{"value", 0.25}});
}
