#include "ops/dynamic_per_token_scaled_int8_quant.h"

#include "base/error.h"
#include "ir/shape_rules.h"
#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/cast.h"
#include "ops/div_scalar.h"
#include "ops/replace_nan.h"
#include "ops/static_scaled_int8_quant.h"

namespace weft {

std::pair<Value, Value> dynamic_per_token_scaled_int8_quant(const Value& x, CallSite site) {
  return call(site, "dynamic_per_token_scaled_int8_quant", {x}, {});
}

}  // namespace weft

OP(dynamic_per_token_scaled_int8_quant) {
  op.schema("dynamic_per_token_scaled_int8_quant(Tensor x) -> (Tensor, Tensor)")
      .function(&weft::dynamic_per_token_scaled_int8_quant);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "dynamic_per_token_scaled_int8_quant", "x");
    USER_CHECK(x.rank() >= 1 && !(x.shape.back() == Dim(0)),
               "[dynamic_per_token_scaled_int8_quant] x must have rows with columns, but is {}", x.text());
  });
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    constexpr double kMaxCode = 127;
    const Value x = cast(v[0], DType::f32);
    const Value scale = div_scalar(amax(replace_nan(abs(x), 0.0)), kMaxCode);
    return Values{int8_codes(x, scale, Value()), scale};
  });
  op.quantizes(int8_dynamic_token());
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {1, 576}}});
  op.sample({{"x", {2, 3, 40}}});
  op.tolerance(DType::i8, {});
  op.tolerance(DType::f32, {});
}
