#include "ops/amax.h"

#include "ir/op.h"
#include "ops/sum.h"

namespace weft {

Value amax(const Value& x, std::int64_t dim, CallSite site) { return call(site, "amax", {x}, {{"dim", dim}})[0]; }

}  // namespace weft

OP(amax) {
  op.schema("amax(Tensor x, int dim=-1) -> Tensor").function(&weft::amax);
  op.gives([](const OpRequest& request) { return reduction_rule(request, "amax"); });
  op.exact();
  op.sample({{"x", {5, 200}}});
  op.sample({{"x", {2, 3, 7}}});
  op.sample({{"x", {2, 3, 7}}}, {{"dim", 1}});
}
