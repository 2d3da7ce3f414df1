#include "ops/abs.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value abs(const Value& x, CallSite site) { return call(site, "abs", {x}, {})[0]; }

}  // namespace weft

OP(abs) {
  op.schema("abs(Tensor x) -> Tensor").function(&weft::abs);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "abs"); });
  op.exact();
  op.sample({{"x", {6, 41}}});
  op.sample({{"x", {0, 8}}});
}
