#include "ops/mul.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value mul(const Value& x, const Value& y, CallSite site) { return call(site, "mul", {x, y}, {})[0]; }

}  // namespace weft

OP(mul) {
  op.schema("mul(Tensor x, Tensor y) -> Tensor").function(&weft::mul);
  op.gives([](const OpRequest& request) { return broadcast_rule(request, "mul"); });
  op.commutative();
  op.sample({{"x", {5, 33}}, {"y", {5, 33}}});
  op.sample({{"x", {3, 4, 8}}, {"y", {8}}});
  op.sample({{"x", {2, 7}}, {"y", {2, 1}}});
}
