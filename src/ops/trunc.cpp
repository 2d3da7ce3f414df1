#include "ops/trunc.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value trunc(const Value& x, CallSite site) { return call(site, "trunc", {x}, {})[0]; }

}  // namespace weft

OP(trunc) {
  op.schema("trunc(Tensor x) -> Tensor").function(&weft::trunc);
  op.gives([](const OpRequest& request) { return pointwise_rule(request, "trunc"); });
  op.exact();
  op.sample({{"x", {6, 41}}});
  op.sample({{"x", {0, 8}}});
}
