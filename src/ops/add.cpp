#include "ops/add.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value add(const Value& x, const Value& y, CallSite site) { return call(site, "add", {x, y}, {})[0]; }

}  // namespace weft

OP(add) {
  op.schema("add(Tensor x, Tensor y) -> Tensor").function(&weft::add);
  op.gives([](const OpRequest& request) { return broadcast_rule(request, "add"); });
  op.commutative();
  op.sample({{"x", {5, 33}}, {"y", {5, 33}}});
  op.sample({{"x", {3, 4, 8}}, {"y", {8}}});
  op.sample({{"x", {2, 7}}, {"y", {2, 1}}});
}
