#include "ops/clone.h"

#include "ir/op.h"

namespace weft {

Value clone(const Value& x, CallSite site) { return call(site, "clone", {x}, {})[0]; }

}  // namespace weft

OP(clone) {
  op.schema("clone(Tensor x) -> Tensor").function(&weft::clone);
  op.gives([](const OpRequest& request) {
    Meta copy = request.operand(0);
    copy.strides.clear();
    return std::vector<Meta>{copy};
  });
  op.exact();
  op.sample({{"x", {4, 9}}});
}
