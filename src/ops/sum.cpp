#include "ops/sum.h"

#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value sum(Value x) { return call("sum", {x}, {})[0]; }

}  // namespace weft

OP(sum) {
  op.schema("sum(Tensor x) -> Tensor").function(&weft::sum);
  op.gives([](const OpRequest& request) { return row_reduction_rule(request, "sum"); });
  op.sample({{"x", {5, 200}}});
  op.sample({{"x", {2, 3, 7}}});
}
