#include "ops/mean.h"

#include "base/error.h"
#include "ir/op.h"
#include "ops/div_scalar.h"
#include "ops/sum.h"

namespace weft {

Value mean(const Value& x, CallSite site) { return call(site, "mean", {x}, {})[0]; }

}  // namespace weft

OP(mean) {
  op.schema("mean(Tensor x) -> Tensor").function(&weft::mean);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    USER_CHECK(x.rank() >= 1 && x.shape.back().is_number(), "[mean] x must have rows of a known width, but is {}",
               x.text());
  });
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const Value& x = v[0];
    return Values{div_scalar(sum(x), static_cast<double>(x.dim(-1).number()))};
  });
  op.sample({{"x", {5, 200}}});
}
