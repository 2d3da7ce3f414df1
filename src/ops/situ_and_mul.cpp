#include "ops/situ_and_mul.h"

#include "ir/op.h"
#include "ops/cast.h"
#include "ops/div_scalar.h"
#include "ops/gated.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/sigmoid.h"
#include "ops/tanh.h"

namespace weft {
namespace {

Value bounded_by_tanh(const Value& x, double bound) { return mul_scalar(tanh(div_scalar(x, bound)), bound); }

}  // namespace

Value situ_and_mul(const Value& x, Scalar beta, std::optional<double> linear_beta, CallSite site) {
  return call(site, "situ_and_mul", {x}, {{"beta", beta.value}, {"linear_beta", linear_beta}})[0];
}

}  // namespace weft

OP(situ_and_mul) {
  op.schema("situ_and_mul(Tensor x, float beta, float? linear_beta=None) -> Tensor").function(&weft::situ_and_mul);
  op.checks([](const OpRequest& request) { check_gated(request, "situ_and_mul"); });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const auto [gate, up] = halves_of(cast(v[0], DType::f32));
    const Attribute& linear_beta = a.at("linear_beta");
    const Value let_through = linear_beta.is_none() ? up : bounded_by_tanh(up, linear_beta.real());
    const Value gated = mul(bounded_by_tanh(gate, a.at("beta").real()), sigmoid(gate));
    return Values{cast(mul(gated, let_through), v[0].dtype())};
  });
  op.sample({{"x", {5, 96}}}, {{"beta", 1.5}});
  op.sample({{"x", {1, 3072}}}, {{"beta", 1.5}, {"linear_beta", 2.0}});
  op.sample({{"x", {3, 14}}}, {{"beta", 0.75}});
}
