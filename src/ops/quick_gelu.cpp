#include "ops/quick_gelu.h"

#include "ir/op.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/sigmoid.h"

namespace weft {

Value quick_gelu(const Value& x, CallSite site) { return call(site, "quick_gelu", {x}, {})[0]; }

}  // namespace weft

OP(quick_gelu) {
  op.schema("quick_gelu(Tensor x) -> Tensor").function(&weft::quick_gelu);
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    return Values{mul(v[0], sigmoid(mul_scalar(v[0], 1.702)))};
  });
  op.sample({{"x", {4, 50}}});
  op.sample({{"x", {0, 8}}});
}
