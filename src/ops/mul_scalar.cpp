#include "ops/mul_scalar.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value mul_scalar(const Value& x, Scalar value, CallSite site) {
  return call(site, "mul_scalar", {x}, {{"value", value.value}})[0];
}

}  // namespace weft

OP(mul_scalar) {
  op.schema("mul_scalar(Tensor x, float(liftable) value) -> Tensor").function(&weft::mul_scalar);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "mul_scalar"); });
  op.exact([](const Attributes& a) { return is_power_of_two(a.at("value").real()); });
  op.sample({{"x", {4, 37}}}, {{"value", 0.7}});
  op.sample({{"x", {3}}}, {{"value", -3.0}});
  op.sample({{"x", {5, 9}}}, {{"value", 0.25}});
}
