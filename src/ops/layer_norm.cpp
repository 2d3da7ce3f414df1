#include "ops/layer_norm.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/add.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/mean.h"
#include "ops/mul.h"
#include "ops/rsqrt.h"
#include "ops/sub.h"

namespace weft {
namespace {

void check_layer_norm(const OpRequest& request) {
  const Meta& x = request.operand(0);
  require_floating(x, "layer_norm", "x");
  USER_CHECK(x.rank() >= 1, "[layer_norm] x must have rows, but is {}", x.text());
  for (const std::size_t i : {1, 2}) {
    if (!request.has(i)) continue;
    const Meta& vector = request.operand(i);
    USER_CHECK(is_floating(vector.dtype) && vector.shape == Shape{x.shape.back()},
               "[layer_norm] {} must be float[{}] to match x: {}, but is {}", i == 1 ? "weight" : "bias",
               x.shape.back().text(), x.text(), vector.text());
  }
}

}  // namespace

Value layer_norm(const Value& x, const Value& weight, const Value& bias, Scalar epsilon, CallSite site) {
  return call(site, "layer_norm", {x, weight, bias}, {{"epsilon", epsilon.value}})[0];
}

}  // namespace weft

OP(layer_norm) {
  op.schema("layer_norm(Tensor x, Tensor? weight, Tensor? bias, float epsilon) -> Tensor").function(&weft::layer_norm);
  op.checks(check_layer_norm);
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Value rows = cast(v[0], DType::f32);
    const Value centred = sub(rows, mean(rows));
    Value y = mul(centred, rsqrt(add_scalar(mean(mul(centred, centred)), Scalar(a.at("epsilon")))));
    if (v[1].present()) y = mul(y, cast(v[1], DType::f32));
    if (v[2].present()) y = add(y, cast(v[2], DType::f32));
    return Values{cast(y, v[0].dtype())};
  });
  op.sample({{"x", {3, 64}}, {"weight", {64}}, {"bias", {64}}}, {{"epsilon", 1e-5}});
  op.sample({{"x", {5, 576}}, {"weight", {576}, DType::f32}, {"bias", {576}, DType::f32}}, {{"epsilon", 1e-5}});
  op.sample({{"x", {2, 100}}, {"weight", {100}}}, {{"epsilon", 1e-6}});
  op.sample({{"x", {2, 3, 40}}}, {{"epsilon", 1e-5}});
  op.tolerance(DType::f16, {.absolute = 1e-2, .relative = 2e-3});
}
