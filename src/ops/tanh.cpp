#include "ops/tanh.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value tanh(const Value& x, CallSite site) { return call(site, "tanh", {x}, {})[0]; }

}  // namespace weft

OP(tanh) {
  op.schema("tanh(Tensor x) -> Tensor").function(&weft::tanh);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "tanh"); });
  op.costs(kTanhCost);
  op.sample({{"x", {6, 41}}});
  op.sample({{"x", {0, 8}}});
}
