#include "ops/clamp.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value clamp(const Value& x, std::optional<double> min, std::optional<double> max, CallSite site) {
  return call(site, "clamp", {x}, {{"min", min}, {"max", max}})[0];
}

}  // namespace weft

OP(clamp) {
  op.schema("clamp(Tensor x, float(liftable)? min=None, float(liftable)? max=None) -> Tensor").function(&weft::clamp);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "clamp"); });
  op.exact();
  op.sample({{"x", {4, 19}}}, {{"min", -0.5}, {"max", 0.25}});
  op.sample({{"x", {4, 19}}}, {{"min", 0.0}});
}
