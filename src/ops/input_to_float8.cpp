#include "ops/input_to_float8.h"

#include "ir/shape_rules.h"
#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/fp8_quant.h"
#include "ops/reshape.h"

namespace weft {

std::pair<Value, Value> input_to_float8(const Value& x, DType dtype, CallSite site) {
  return call(site, "input_to_float8", {x}, {{"dtype", dtype}});
}

}  // namespace weft

OP(input_to_float8) {
  op.schema("input_to_float8(Tensor x, ScalarType dtype=f8e4m3) -> (Tensor, Tensor)").function(&weft::input_to_float8);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "input_to_float8", "x");
    USER_CHECK(x.rank() >= 1, "[input_to_float8] x must have rows, but is {}", x.text());
    check_fp8_dtype(request.attributes.at("dtype").dtype(), "input_to_float8", "dtype");
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    constexpr double kLeast = 1e-12;
    const DType dtype = a.at("dtype").dtype();
    Value magnitude = abs(v[0]);
    for (int dim = v[0].rank(); dim-- > 0;) magnitude = amax(magnitude, dim);
    magnitude = clamp(reshape(magnitude, {}), kLeast, std::nullopt);
    const Value factor = mul_scalar(reciprocal(magnitude), fp8_limit(dtype));
    return Values{fp8_codes(mul(v[0], factor), dtype), reciprocal(cast(factor, DType::f32))};
  });
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {2, 3, 50}}}, {{"dtype", DType::f8e4m3fnuz}});
  op.tolerance(DType::f8e4m3, {});
  op.tolerance(DType::f8e4m3fnuz, {});
  op.tolerance(DType::f32, {});
}
