#include "ops/gelu_new.h"

#include <numbers>

#include "ir/op.h"
#include "ops/add.h"
#include "ops/tanh_gelu.h"

namespace weft {

Value gelu_new(const Value& x, CallSite site) { return call(site, "gelu_new", {x}, {})[0]; }

}  // namespace weft

OP(gelu_new) {
  op.schema("gelu_new(Tensor x) -> Tensor").function(&weft::gelu_new);
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    constexpr double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    constexpr double kKappa = 0.044715;
    const Value cube = mul(mul(v[0], v[0]), v[0]);
    return Values{tanh_gelu(v[0], mul_scalar(add(v[0], mul_scalar(cube, kKappa)), kBeta))};
  });
  op.sample({{"x", {4, 50}}});
  op.sample({{"x", {0, 8}}});
}
