#include "ops/sum.h"

#include "ir/shape_rules.h"

namespace weft {

Value sum(const Value& x, std::int64_t dim, CallSite site) { return call(site, "sum", {x}, {{"dim", dim}})[0]; }

std::vector<Meta> reduction_rule(const OpRequest& request, const char* op) {
  const Meta& x = request.operand(0);
  require_floating(x, op, "x");
  Shape shape = x.shape;
  shape[static_cast<std::size_t>(checked_axis(request.attributes.at("dim").integer(), x, op))] = 1;
  return {Meta::tensor(x.dtype, std::move(shape))};
}

}  // namespace weft

OP(sum) {
  op.schema("sum(Tensor x, int dim=-1) -> Tensor").function(&weft::sum);
  op.gives([](const OpRequest& request) { return reduction_rule(request, "sum"); });
  op.sample({{"x", {5, 200}}});
  op.sample({{"x", {2, 3, 7}}});
  op.sample({{"x", {2, 3, 7}}}, {{"dim", 1}});
}
