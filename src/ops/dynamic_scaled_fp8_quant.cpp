#include "ops/dynamic_scaled_fp8_quant.h"

#include "ir/shape_rules.h"
#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/fp8_quant.h"
#include "ops/reshape.h"

namespace weft {

std::pair<Value, Value> dynamic_scaled_fp8_quant(const Value& x, Scalar minimum_scale, DType dtype, CallSite site) {
  return call(site, "dynamic_scaled_fp8_quant", {x}, {{"minimum_scale", minimum_scale.value}, {"dtype", dtype}});
}

}  // namespace weft

OP(dynamic_scaled_fp8_quant) {
  op.schema("dynamic_scaled_fp8_quant(Tensor x, float minimum_scale=0.0, ScalarType dtype=f8e4m3) -> (Tensor, Tensor)")
      .function(&weft::dynamic_scaled_fp8_quant);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "dynamic_scaled_fp8_quant", "x");
    USER_CHECK(x.rank() >= 1, "[dynamic_scaled_fp8_quant] x must have rows, but is {}", x.text());
    check_fp8_dtype(request.attributes.at("dtype").dtype(), "dynamic_scaled_fp8_quant", "dtype");
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const DType dtype = a.at("dtype").dtype();
    const Value x = cast(v[0], DType::f32);
    Value magnitude = abs(x);
    for (int dim = x.rank(); dim-- > 0;) magnitude = amax(magnitude, dim);
    // At least 0: the maximum over no rows is -infinity.
    magnitude = clamp(reshape(magnitude, {1}), 0.0, std::nullopt);
    const Value scale = clamp(fp8_scale(magnitude, dtype, "division"), a.at("minimum_scale").real(), std::nullopt);
    return Values{fp8_codes(divided_by_scale(x, scale, "reciprocal"), dtype), scale};
  });
  for (const DType dtype : {DType::f8e4m3, DType::f8e4m3fnuz})
    op.quantizes(fp8_dynamic_tensor(dtype), {{"dtype", dtype}});
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {2, 3, 50}}}, {{"minimum_scale", 1.0}, {"dtype", DType::f8e4m3fnuz}});
  op.tolerance(DType::f8e4m3, {});
  op.tolerance(DType::f8e4m3fnuz, {});
  op.tolerance(DType::f32, {});
}
