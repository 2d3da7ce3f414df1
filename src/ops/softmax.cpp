#include "ops/softmax.h"

#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/amax.h"
#include "ops/cast.h"
#include "ops/div.h"
#include "ops/exp.h"
#include "ops/sub.h"
#include "ops/sum.h"

namespace weft {

Value softmax(const Value& x, std::int64_t dim, CallSite site) { return call(site, "softmax", {x}, {{"dim", dim}})[0]; }

}  // namespace weft

OP(softmax) {
  op.schema("softmax(Tensor x, int dim=-1) -> Tensor").function(&weft::softmax);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "softmax", "x");
    checked_axis(request.attributes.at("dim").integer(), x, "softmax");
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const std::int64_t dim = a.at("dim").integer();
    const Value x = cast(v[0], v[0].dtype() == DType::f64 ? DType::f64 : DType::f32);
    const Value power = exp(sub(x, amax(x, dim)));
    return Values{cast(div(power, sum(power, dim)), v[0].dtype())};
  });
  op.sample({{"x", {5, 200}}});
  op.sample({{"x", {3, 64}}});
  op.sample({{"x", {2, 3, 77}}}, {{"dim", 2}});
  op.sample({{"x", {2, 9, 5}}}, {{"dim", 1}});
  op.sample({{"x", {4, 576}}}, {{"dim", -1}});
}
