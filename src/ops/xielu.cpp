#include "ops/xielu.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/add.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/exp.h"
#include "ops/minimum.h"
#include "ops/mul.h"
#include "ops/softplus.h"
#include "ops/sub.h"
#include "ops/where_at_most.h"

namespace weft {
namespace {

DType xielu_dtype(DType x, DType alpha) {
  if (x == alpha) return x;
  return x == DType::f64 || alpha == DType::f64 ? DType::f64 : DType::f32;
}

void check_xielu_alpha(const OpRequest& request, std::size_t operand, const char* parameter) {
  const Meta& alpha = request.operand(operand);
  require_floating(alpha, "xielu", parameter);
  USER_CHECK(alpha.shape == Shape{1} && alpha.dtype == request.operand(1).dtype, "[xielu] {} must be {}[1], but is {}",
             parameter, dtype_text(request.operand(1).dtype), alpha.text());
}

}  // namespace

Value xielu(const Value& x, const Value& alpha_p, const Value& alpha_n, Scalar beta, Scalar eps, CallSite site) {
  return call(site, "xielu", {x, alpha_p, alpha_n}, {{"beta", beta.value}, {"eps", eps.value}})[0];
}

}  // namespace weft

OP(xielu) {
  op.schema("xielu(Tensor x, Tensor alpha_p, Tensor alpha_n, float beta=0.5, float eps=-1e-06) -> Tensor")
      .function(&weft::xielu);
  op.checks([](const OpRequest& request) {
    require_floating(request.operand(0), "xielu", "x");
    check_xielu_alpha(request, 1, "alpha_p");
    check_xielu_alpha(request, 2, "alpha_n");
  });
  op.means([](Evaluator& home, const Values& v, const Attributes& a) {
    const DType own = v[0].dtype(), alpha = v[1].dtype(), common = xielu_dtype(own, alpha);
    const Value beta = constant(home, {a.at("beta").real()}, Shape{1}, alpha);
    const Value eps = constant(home, {a.at("eps").real()}, Shape{1}, alpha);
    const Value wide = cast(v[0], common);
    const Value line = cast(mul(v[0], cast(beta, own)), common);
    const Value square = mul(mul(wide, cast(softplus(v[1]), common)), wide);
    // In f64, exp(x) - 1 loses no digit that a narrower dtype holds.
    const Value low = cast(minimum(v[0], cast(eps, own)), DType::f64);
    const Value bend = sub(cast(add_scalar(exp(low), -1.0), own), v[0]);
    const Value scale = cast(add(softplus(v[2]), beta), common);
    return Values{where_at_most(v[0], add(mul(cast(bend, common), scale), line), add(square, line), 0.0)};
  });
  op.sample({{"x", {4, 50}}, {"alpha_p", {1}}, {"alpha_n", {1}}});
  op.sample({{"x", {3, 14}}, {"alpha_p", {1}, DType::bf16}, {"alpha_n", {1}, DType::bf16}}, {{"beta", 0.25}});
  op.sample({{"x", {0, 8}}, {"alpha_p", {1}, DType::f32}, {"alpha_n", {1}, DType::f32}}, {{"eps", -1e-3}});
}
