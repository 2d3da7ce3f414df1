#include "ops/round.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value round(const Value& x, CallSite site) { return call(site, "round", {x}, {})[0]; }

}  // namespace weft

OP(round) {
  op.schema("round(Tensor x) -> Tensor").function(&weft::round);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "round"); });
  op.exact();
  op.sample({{"x", {6, 41}}});
  op.sample({{"x", {0, 8}}});
}
