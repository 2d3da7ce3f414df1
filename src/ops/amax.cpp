#include "ops/amax.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value amax(Value x) { return call("amax", {x}, {})[0]; }

}  // namespace weft

OP(amax) {
  op.schema("amax(Tensor x) -> Tensor").function(&weft::amax);
  op.gives([](const OpRequest& request) { return row_reduction_rule(request, "amax"); });
  op.sample({{"x", {5, 200}}});
  op.sample({{"x", {2, 3, 7}}});
}
