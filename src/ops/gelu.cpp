#include "ops/gelu.h"

#include <numbers>

#include "ir/op.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/erf.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"

namespace weft {

Value gelu(const Value& x, CallSite site) { return call(site, "gelu", {x}, {})[0]; }

}  // namespace weft

OP(gelu) {
  op.schema("gelu(Tensor x) -> Tensor").function(&weft::gelu);
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const Value wide = cast(v[0], v[0].dtype() == DType::f64 ? DType::f64 : DType::f32);
    const Value bell = add_scalar(erf(mul_scalar(wide, std::numbers::sqrt2 / 2)), 1.0);
    return Values{cast(mul(mul_scalar(wide, 0.5), bell), v[0].dtype())};
  });
  op.sample({{"x", {4, 50}}});
}
