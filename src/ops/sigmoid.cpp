#include "ops/sigmoid.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/arithmetic_cost.h"

namespace weft {

Value sigmoid(const Value& x, CallSite site) { return call(site, "sigmoid", {x}, {})[0]; }

}  // namespace weft

OP(sigmoid) {
  op.schema("sigmoid(Tensor x) -> Tensor").function(&weft::sigmoid);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "sigmoid"); });
  op.costs(kSigmoidCost);
  op.sample({{"x", {6, 41}}});
  op.sample({{"x", {0, 8}}});
}
