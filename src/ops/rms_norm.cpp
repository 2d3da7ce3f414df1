#include "ops/rms_norm.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/add_scalar.h"
#include "ops/cast.h"
#include "ops/mean.h"
#include "ops/mul.h"
#include "ops/rsqrt.h"
#include "ops/slice.h"

namespace weft {

Value rms_norm(const Value& x, const Value& weight, Scalar epsilon, std::optional<std::int64_t> variance_size,
               CallSite site) {
  return call(site, "rms_norm", {x, weight}, {{"epsilon", epsilon.value}, {"variance_size", variance_size}})[0];
}

Value normalized_rows(const Value& rows, const Value& weight, Scalar epsilon, const Attribute& variance_size,
                      DType dtype) {
  const Value part = variance_size.is_none() ? rows : slice(rows, -1, 0, variance_size.integer());
  Value y = mul(rows, rsqrt(add_scalar(mean(mul(part, part)), epsilon)));
  if (weight.present()) y = mul(cast(y, weight.dtype()), weight);
  return cast(y, dtype);
}

}  // namespace weft

OP(rms_norm) {
  op.schema("rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor")
      .function(&weft::rms_norm);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "rms_norm", "x");
    USER_CHECK(x.rank() >= 1, "[rms_norm] x must have rows, but is {}", x.text());
    if (request.has(1)) {
      const Meta& weight = request.operand(1);
      USER_CHECK(is_floating(weight.dtype) && weight.shape == Shape{x.shape.back()},
                 "[rms_norm] weight must be float[{}] to match x: {}, but is {}", x.shape.back().text(), x.text(),
                 weight.text());
    }
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    return Values{
        normalized_rows(cast(v[0], DType::f32), v[1], Scalar(a.at("epsilon")), a.at("variance_size"), v[0].dtype())};
  });
  op.sample({{"x", {3, 64}}, {"weight", {64}}}, {{"epsilon", 1e-6}});
  op.sample({{"x", {5, 576}}, {"weight", {576}, DType::f32}}, {{"epsilon", 1e-5}});
  op.sample({{"x", {2, 100}}}, {{"epsilon", 1e-5}});
  op.sample({{"x", {2, 3, 40}}, {"weight", {40}}}, {{"epsilon", 1e-5}, {"variance_size", 16}});
  op.tolerance(DType::f16, {.absolute = 1e-2, .relative = 2e-3});
}
