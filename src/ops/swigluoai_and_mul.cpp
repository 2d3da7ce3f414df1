#include "ops/swigluoai_and_mul.h"

#include "ir/op.h"
#include "ops/add_scalar.h"
#include "ops/clamp.h"
#include "ops/gated.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/sigmoid.h"

namespace weft {

Value swigluoai_and_mul(const Value& x, Scalar alpha, Scalar limit, CallSite site) {
  return call(site, "swigluoai_and_mul", {x}, {{"alpha", alpha.value}, {"limit", limit.value}})[0];
}

}  // namespace weft

OP(swigluoai_and_mul) {
  op.schema("swigluoai_and_mul(Tensor x, float alpha=1.702, float limit=7.0) -> Tensor")
      .function(&weft::swigluoai_and_mul);
  op.checks([](const OpRequest& request) { check_gated(request, "swigluoai_and_mul"); });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const double limit = a.at("limit").real();
    const auto [gates, ups] = interleaved_of(v[0]);
    const Value gate = clamp(gates, std::nullopt, limit), up = clamp(ups, -limit, limit);
    const Value gated = mul(gate, sigmoid(mul_scalar(gate, a.at("alpha").real())));
    return Values{mul(add_scalar(up, 1.0), gated)};
  });
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {1, 3072}}}, {{"limit", 0.5}});
  op.sample({{"x", {3, 14}}}, {{"alpha", 1.25}, {"limit", 1.5}});
}
