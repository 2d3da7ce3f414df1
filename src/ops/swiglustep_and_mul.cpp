#include "ops/swiglustep_and_mul.h"

#include "ir/op.h"
#include "ops/clamp.h"
#include "ops/gated.h"
#include "ops/mul.h"
#include "ops/silu.h"

namespace weft {

Value swiglustep_and_mul(const Value& x, Scalar limit, CallSite site) {
  return call(site, "swiglustep_and_mul", {x}, {{"limit", limit.value}})[0];
}

}  // namespace weft

OP(swiglustep_and_mul) {
  op.schema("swiglustep_and_mul(Tensor x, float limit=7.0) -> Tensor").function(&weft::swiglustep_and_mul);
  op.checks([](const OpRequest& request) { check_gated(request, "swiglustep_and_mul"); });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const double limit = a.at("limit").real();
    const auto [gate, up] = halves_of(v[0]);
    return Values{mul(clamp(silu(gate), std::nullopt, limit), clamp(up, -limit, limit))};
  });
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {1, 3072}}}, {{"limit", 0.5}});
  op.sample({{"x", {3, 14}}}, {{"limit", 1.5}});
}
