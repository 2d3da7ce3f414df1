#include "ops/maximum.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value maximum(const Value& x, const Value& y, CallSite site) { return call(site, "maximum", {x, y}, {})[0]; }

}  // namespace weft

OP(maximum) {
  op.schema("maximum(Tensor x, Tensor y) -> Tensor").function(&weft::maximum);
  op.gives([](const OpRequest& request) { return broadcast_rule(request, "maximum"); });
  op.commutative();
  op.exact();
  op.sample({{"x", {5, 33}}, {"y", {5, 33}}});
  op.sample({{"x", {3, 4, 8}}, {"y", {8}}});
  op.sample({{"x", {2, 7}}, {"y", {2, 1}}});
}
