#include "ops/static_scaled_int8_quant.h"

#include "base/error.h"
#include "ir/shape_rules.h"
#include "ops/add.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/mul.h"
#include "ops/reciprocal.h"
#include "ops/reshape.h"
#include "ops/round.h"

namespace weft {

Value static_scaled_int8_quant(const Value& x, const Value& scale, const Value& zero_point, CallSite site) {
  return call(site, "static_scaled_int8_quant", {x, scale, zero_point}, {})[0];
}

Value int8_codes(const Value& x, const Value& scale, const Value& zero_point) {
  const Value inverse = reciprocal(scale);
  Value scaled = mul(x, inverse);
  if (zero_point.present()) {
    // vLLM's kernel multiplies and adds with one rounding. In f64 the product of two f32 is exact.
    const Value product = mul(cast(x, DType::f64), cast(inverse, DType::f64));
    scaled = cast(add(product, cast(zero_point, DType::f64)), DType::f32);
  }
  return cast(clamp(round(scaled), -128.0, 127.0), DType::i8);
}

}  // namespace weft

OP(static_scaled_int8_quant) {
  op.schema("static_scaled_int8_quant(Tensor x, Tensor scale, Tensor? zero_point=None) -> Tensor")
      .function(&weft::static_scaled_int8_quant);
  op.checks([](const OpRequest& request) {
    require_floating(request.operand(0), "static_scaled_int8_quant", "x");
    const Meta& scale = request.operand(1);
    USER_CHECK(scale.is_tensor() && scale.dtype == DType::f32 && element_count(scale.shape) == Dim(1),
               "[static_scaled_int8_quant] scale must be one f32, but is {}", scale.text());
    if (!request.has(2)) return;
    const Meta& zero_point = request.operand(2);
    USER_CHECK(zero_point.is_tensor() && zero_point.dtype == DType::i32 && element_count(zero_point.shape) == Dim(1),
               "[static_scaled_int8_quant] zero_point must be one i32, but is {}", zero_point.text());
  });
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const Value zero_point = v[2].present() ? cast(reshape(v[2], {1}), DType::f32) : Value();
    return Values{int8_codes(cast(v[0], DType::f32), reshape(v[1], {1}), zero_point)};
  });
  op.quantizes(int8_static_tensor());
  op.sample({{"x", {5, 96}}, {"scale", {1}, DType::f32, Fill::codes}});
  op.sample({{"x", {2, 3, 40}}, {"scale", {}, DType::f32, Fill::codes}, {"zero_point", {1}, DType::i32, Fill::codes}});
  op.tolerance(DType::i8, {});
}
