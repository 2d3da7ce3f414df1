#include "ops/gelu_fast.h"

#include "ir/op.h"
#include "ops/tanh_gelu.h"

namespace weft {

Value gelu_fast(const Value& x, CallSite site) { return call(site, "gelu_fast", {x}, {})[0]; }

}  // namespace weft

OP(gelu_fast) {
  op.schema("gelu_fast(Tensor x) -> Tensor").function(&weft::gelu_fast);
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    constexpr double kBeta = 0.7978845608;  // sqrt(2 / pi), with the published digits
    constexpr double kKappa = 0.044715;
    const Value bend = add_scalar(mul(mul_scalar(v[0], kKappa), v[0]), 1.0);
    return Values{tanh_gelu(v[0], mul(mul_scalar(v[0], kBeta), bend))};
  });
  op.sample({{"x", {4, 50}}});
  op.sample({{"x", {0, 8}}});
}
