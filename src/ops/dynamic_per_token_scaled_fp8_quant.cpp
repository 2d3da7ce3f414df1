#include "ops/dynamic_per_token_scaled_fp8_quant.h"

#include "ir/shape_rules.h"
#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/fp8_quant.h"

namespace weft {

std::pair<Value, Value> dynamic_per_token_scaled_fp8_quant(const Value& x, const Value& scale_ub,
                                                           std::optional<double> minimum_scale,
                                                           std::string_view scale_by, std::string_view codes_by,
                                                           DType dtype, CallSite site) {
  return call(site, "dynamic_per_token_scaled_fp8_quant", {x, scale_ub},
              {{"minimum_scale", minimum_scale},
               {"scale_by", WordView{scale_by}},
               {"codes_by", WordView{codes_by}},
               {"dtype", dtype}});
}

void check_token_fp8(const OpRequest& request, const char* op, std::size_t scale_ub) {
  check_fp8_dtype(request.attributes.at("dtype").dtype(), op, "dtype");
  check_word(request, op, "scale_by", {"division", "reciprocal"});
  check_word(request, op, "codes_by", {"division", "reciprocal"});
  check_scale_ub(request, op, scale_ub);
}

}  // namespace weft

OP(dynamic_per_token_scaled_fp8_quant) {
  op.schema(
        "dynamic_per_token_scaled_fp8_quant(Tensor x, Tensor? scale_ub=None, float? minimum_scale=None, str "
        "scale_by=division, str codes_by=division, ScalarType dtype=f8e4m3) -> (Tensor, Tensor)")
      .function(&weft::dynamic_per_token_scaled_fp8_quant);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "dynamic_per_token_scaled_fp8_quant", "x");
    USER_CHECK(x.rank() >= 1 && !(x.shape.back() == Dim(0)),
               "[dynamic_per_token_scaled_fp8_quant] x must have rows with columns, but is {}", x.text());
    check_token_fp8(request, "dynamic_per_token_scaled_fp8_quant", 1);
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const DType dtype = a.at("dtype").dtype();
    const Value x = cast(v[0], DType::f32);
    const Value magnitude = held_to(v[1], amax(abs(x)));
    const Attribute& minimum_scale = a.at("minimum_scale");
    const double least = minimum_scale.is_none() ? fp8_minimum_scale(dtype) : minimum_scale.real();
    const Value scale = clamp(fp8_scale(magnitude, dtype, a.at("scale_by").word()), least, std::nullopt);
    return Values{fp8_codes(divided_by_scale(x, scale, a.at("codes_by").word()), dtype), scale};
  });
  for (const DType dtype : {DType::f8e4m3, DType::f8e4m3fnuz})
    op.quantizes(fp8_dynamic_token(dtype), {{"dtype", dtype}});
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {1, 576}}}, {{"scale_by", EnumWord{"reciprocal"}}});
  op.sample({{"x", {3, 100}}, {"scale_ub", {1}, DType::f32, Fill::positive}}, {{"codes_by", EnumWord{"reciprocal"}}});
  op.sample({{"x", {2, 3, 40}}}, {{"minimum_scale", 0.01}, {"dtype", DType::f8e4m3fnuz}});
  op.tolerance(DType::f8e4m3, {});
  op.tolerance(DType::f8e4m3fnuz, {});
  op.tolerance(DType::f32, {});
}
