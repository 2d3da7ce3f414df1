#include "ops/minimum.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value minimum(const Value& x, const Value& y, CallSite site) { return call(site, "minimum", {x, y}, {})[0]; }

}  // namespace weft

OP(minimum) {
  op.schema("minimum(Tensor x, Tensor y) -> Tensor").function(&weft::minimum);
  op.gives([](const OpRequest& request) { return broadcast_rule(request, "minimum"); });
  op.commutative();
  op.exact();
  op.sample({{"x", {5, 33}}, {"y", {5, 33}}});
  op.sample({{"x", {3, 4, 8}}, {"y", {8}}});
  op.sample({{"x", {2, 7}}, {"y", {2, 1}}});
}
