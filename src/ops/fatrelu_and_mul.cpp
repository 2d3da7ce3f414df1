#include "ops/fatrelu_and_mul.h"

#include "ir/op.h"
#include "ops/constant.h"
#include "ops/gated.h"
#include "ops/mul.h"
#include "ops/where_at_most.h"

namespace weft {

Value fatrelu_and_mul(const Value& x, Scalar threshold, CallSite site) {
  return call(site, "fatrelu_and_mul", {x}, {{"threshold", threshold.value}})[0];
}

}  // namespace weft

OP(fatrelu_and_mul) {
  op.schema("fatrelu_and_mul(Tensor x, float threshold=0.0) -> Tensor").function(&weft::fatrelu_and_mul);
  op.checks([](const OpRequest& request) { check_gated(request, "fatrelu_and_mul"); });
  op.means([](Evaluator& home, const Values& v, const Attributes& a) {
    const auto [gate, up] = halves_of(v[0]);
    const Value zero = constant(home, {0.0}, Shape{1}, v[0].dtype());
    return Values{mul(where_at_most(gate, zero, gate, a.at("threshold").real()), up)};
  });
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {1, 3072}}}, {{"threshold", 0.25}});
  op.sample({{"x", {3, 14}}}, {{"threshold", -0.5}});
}
