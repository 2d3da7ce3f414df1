#include "ops/relu2.h"

#include "ir/op.h"
#include "ops/clamp.h"
#include "ops/mul.h"

namespace weft {

Value relu2(const Value& x, CallSite site) { return call(site, "relu2", {x}, {})[0]; }

}  // namespace weft

OP(relu2) {
  op.schema("relu2(Tensor x) -> Tensor").function(&weft::relu2);
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const Value positive = clamp(v[0], 0.0, std::nullopt);
    return Values{mul(positive, positive)};
  });
  op.sample({{"x", {4, 50}}});
  op.sample({{"x", {0, 8}}});
}
