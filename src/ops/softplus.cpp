#include "ops/softplus.h"

#include "ir/op.h"
#include "ops/abs.h"
#include "ops/add.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/exp.h"
#include "ops/log1p.h"
#include "ops/neg.h"

namespace weft {

Value softplus(const Value& x, CallSite site) { return call(site, "softplus", {x}, {})[0]; }

}  // namespace weft

OP(softplus) {
  op.schema("softplus(Tensor x) -> Tensor").function(&weft::softplus);
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    // max(x, 0) + log(1 + exp(-|x|)) does not overflow.
    const Value wide = cast(v[0], DType::f64);
    const Value rest = log1p(exp(neg(abs(wide))));
    return Values{cast(add(clamp(wide, 0.0, std::nullopt), rest), v[0].dtype())};
  });
  op.sample({{"x", {4, 50}}});
  op.sample({{"x", {0, 8}}});
}
