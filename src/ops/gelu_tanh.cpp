#include "ops/gelu_tanh.h"

#include <numbers>

#include "ir/op.h"
#include "ops/add.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/tanh.h"

namespace weft {

Value gelu_tanh(const Value& x, CallSite site) { return call(site, "gelu_tanh", {x}, {})[0]; }

}  // namespace weft

OP(gelu_tanh) {
  op.schema("gelu_tanh(Tensor x) -> Tensor").function(&weft::gelu_tanh);
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    // The constants of the published approximation, in torch's order of operations. Torch adds the cube with a fused
    // multiply-add, rounded once. The rounding matters in the tails: 1 + tanh cancels there, so one last bit of the sum
    // becomes many bits of the result.
    constexpr double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    constexpr float kKappa = 0.044715f;
    const Value wide = cast(v[0], DType::f32);
    const Value cube = mul(mul(wide, wide), wide);
    const Value sum = add(cast(wide, DType::f64), mul_scalar(cast(cube, DType::f64), double{kKappa}));
    const Value inner = mul_scalar(cast(sum, DType::f32), kBeta);
    return Values{cast(mul(mul_scalar(wide, 0.5), add_scalar(tanh(inner), 1.0)), v[0].dtype())};
  });
  op.sample({{"x", {4, 50}}});
}
