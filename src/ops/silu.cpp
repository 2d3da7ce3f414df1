#include "ops/silu.h"

#include "ir/op.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/div.h"
#include "ops/exp.h"
#include "ops/neg.h"

namespace weft {

Value silu(const Value& x, CallSite site) { return call(site, "silu", {x}, {})[0]; }

}  // namespace weft

OP(silu) {
  op.schema("silu(Tensor x) -> Tensor").function(&weft::silu);
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const Value wide = cast(v[0], v[0].dtype() == DType::f64 ? DType::f64 : DType::f32);
    return Values{cast(div(wide, add_scalar(exp(neg(wide)), 1.0)), v[0].dtype())};
  });
  op.sample({{"x", {4, 50}}});
}
