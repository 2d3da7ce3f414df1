#include "ops/sub.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value sub(const Value& x, const Value& y, CallSite site) { return call(site, "sub", {x, y}, {})[0]; }

}  // namespace weft

OP(sub) {
  op.schema("sub(Tensor x, Tensor y) -> Tensor").function(&weft::sub);
  op.gives([](const OpRequest& request) { return broadcast_rule(request, "sub"); });
  op.sample({{"x", {5, 33}}, {"y", {5, 33}}});
  op.sample({{"x", {3, 4, 8}}, {"y", {8}}});
  op.sample({{"x", {2, 7}}, {"y", {2, 1}}});
}
