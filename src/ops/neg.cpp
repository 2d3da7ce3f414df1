#include "ops/neg.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value neg(const Value& x, CallSite site) { return call(site, "neg", {x}, {})[0]; }

}  // namespace weft

OP(neg) {
  op.schema("neg(Tensor x) -> Tensor").function(&weft::neg);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "neg"); });
  op.exact();
  op.sample({{"x", {6, 41}}});
  op.sample({{"x", {0, 8}}});
}
