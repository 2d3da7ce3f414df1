#include "ops/replace_nan.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value replace_nan(const Value& x, Scalar value, CallSite site) {
  return call(site, "replace_nan", {x}, {{"value", value.value}})[0];
}

}  // namespace weft

OP(replace_nan) {
  op.schema("replace_nan(Tensor x, float value) -> Tensor").function(&weft::replace_nan);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "replace_nan"); });
  op.exact();
  op.sample({{"x", {4, 37}}}, {{"value", 0.0}});
  op.sample({{"x", {3}}}, {{"value", -3.0}});
}
