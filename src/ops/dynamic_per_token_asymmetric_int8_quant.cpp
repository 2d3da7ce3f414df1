#include "ops/dynamic_per_token_asymmetric_int8_quant.h"

#include <limits>

#include "base/error.h"
#include "ir/shape_rules.h"
#include "ops/add_scalar.h"
#include "ops/amax.h"
#include "ops/cast.h"
#include "ops/div.h"
#include "ops/div_scalar.h"
#include "ops/neg.h"
#include "ops/replace_nan.h"
#include "ops/round.h"
#include "ops/static_scaled_int8_quant.h"
#include "ops/sub.h"

namespace weft {

std::tuple<Value, Value, Value> dynamic_per_token_asymmetric_int8_quant(const Value& x, CallSite site) {
  return call(site, "dynamic_per_token_asymmetric_int8_quant", {x}, {});
}

}  // namespace weft

OP(dynamic_per_token_asymmetric_int8_quant) {
  op.schema("dynamic_per_token_asymmetric_int8_quant(Tensor x) -> (Tensor, Tensor, Tensor)");
  op.function(&weft::dynamic_per_token_asymmetric_int8_quant);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "dynamic_per_token_asymmetric_int8_quant", "x");
    USER_CHECK(x.rank() >= 1 && !(x.shape.back() == Dim(0)),
               "[dynamic_per_token_asymmetric_int8_quant] x must have rows with columns, but is {}", x.text());
  });
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity(), kSteps = 255, kMinCode = -128;
    const Value x = cast(v[0], DType::f32);
    const Value largest = amax(replace_nan(x, -kInfinity)), smallest = neg(amax(replace_nan(neg(x), -kInfinity)));
    const Value scale = div_scalar(sub(largest, smallest), kSteps);
    const Value zero_point = round(add_scalar(neg(div(smallest, scale)), kMinCode));
    return Values{int8_codes(x, scale, zero_point), scale, cast(replace_nan(zero_point, -0x1p31), DType::i32)};
  });
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {1, 576}}});
  op.sample({{"x", {2, 3, 40}}});
  op.tolerance(DType::i8, {});
  op.tolerance(DType::f32, {});
}
