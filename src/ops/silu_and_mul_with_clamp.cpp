#include "ops/silu_and_mul_with_clamp.h"

#include "ir/op.h"
#include "ops/add_scalar.h"
#include "ops/clamp.h"
#include "ops/gated.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/sigmoid.h"

namespace weft {

Value silu_and_mul_with_clamp(const Value& x, Scalar swiglu_limit, Scalar alpha, Scalar beta, CallSite site) {
  return call(site, "silu_and_mul_with_clamp", {x},
              {{"swiglu_limit", swiglu_limit.value}, {"alpha", alpha.value}, {"beta", beta.value}})[0];
}

}  // namespace weft

OP(silu_and_mul_with_clamp) {
  op.schema("silu_and_mul_with_clamp(Tensor x, float swiglu_limit, float alpha=1.0, float beta=0.0) -> Tensor")
      .function(&weft::silu_and_mul_with_clamp);
  op.checks([](const OpRequest& request) { check_gated(request, "silu_and_mul_with_clamp"); });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const double limit = a.at("swiglu_limit").real();
    const auto [gates, ups] = halves_of(v[0]);
    const Value gate = clamp(gates, std::nullopt, limit), up = clamp(ups, -limit, limit);
    const Value gated = mul(gate, sigmoid(mul_scalar(gate, a.at("alpha").real())));
    return Values{mul(gated, add_scalar(up, a.at("beta").real()))};
  });
  op.sample({{"x", {5, 96}}}, {{"swiglu_limit", 7.0}});
  op.sample({{"x", {1, 3072}}}, {{"swiglu_limit", 0.5}, {"alpha", 1.702}, {"beta", 1.0}});
  op.sample({{"x", {3, 14}}}, {{"swiglu_limit", 1.5}});
}
