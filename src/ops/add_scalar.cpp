#include "ops/add_scalar.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value add_scalar(const Value& x, Scalar value, CallSite site) {
  return call(site, "add_scalar", {x}, {{"value", value.value}})[0];
}

}  // namespace weft

OP(add_scalar) {
  op.schema("add_scalar(Tensor x, float(liftable) value) -> Tensor").function(&weft::add_scalar);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "add_scalar"); });
  op.exact([](const Attributes& a) { return a.at("value").real() == 0; });
  op.sample({{"x", {4, 37}}}, {{"value", 0.7}});
  op.sample({{"x", {3}}}, {{"value", -3.0}});
  op.sample({{"x", {5, 9}}}, {{"value", 0.0}});
}
