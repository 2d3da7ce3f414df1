#include "ops/linear_scaled.h"

#include "ir/shape_rules.h"
#include "ops/linear.h"
#include "ops/mul.h"
#include "ops/quantized_linear.h"
#include "ops/reshape.h"

namespace weft {
namespace {

void check_scale(const Meta& scale, const Dim& rows, const char* parameter, bool may_be_vector) {
  const bool fits = scale.shape == Shape{rows, 1} || (may_be_vector && scale.shape == Shape{rows});
  USER_CHECK(scale.is_tensor() && scale.dtype == DType::f32 && (fits || is_one_scale(scale)),
             "[linear_scaled] {} must be f32[1] or f32[{}, 1], but is {}", parameter, rows.text(), scale.text());
}

}  // namespace

Value linear_scaled(const Value& x, const Value& scale, const Value& weight, const Value& weight_scale,
                    const Value& bias, DType dtype, CallSite site) {
  return call(site, "linear_scaled", {x, scale, weight, weight_scale, bias}, {{"dtype", dtype}})[0];
}

}  // namespace weft

OP(linear_scaled) {
  op.schema(
        "linear_scaled(Tensor x, Tensor scale, Tensor weight, Tensor weight_scale, Tensor? bias=None, ScalarType "
        "dtype=f32) -> Tensor")
      .function(&weft::linear_scaled);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    check_quantized_linear(request, "linear_scaled", 2, 4);
    USER_CHECK(x.dtype == DType::f8e4m3 || x.dtype == DType::f8e4m3fnuz || x.dtype == DType::i8,
               "[linear_scaled] x must be of f8e4m3, f8e4m3fnuz or i8, but is {}", x.text());
    check_scale(request.operand(1), x.shape[0], "scale", false);
    check_scale(request.operand(3), request.operand(2).shape[0], "weight_scale", true);
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Value sums = linear(cast(v[0], DType::f32), cast(v[2], DType::f32));
    const Value columns = reshape(v[3], {element_count(v[3].meta().shape)});
    const Value rows = is_one_scale(v[1].meta()) ? reshape(v[1], {1}) : v[1];
    return Values{finished_linear(mul(mul(sums, columns), rows), v[4], a.at("dtype").dtype())};
  });
  for (DType codes : {DType::f8e4m3, DType::i8}) {
    op.sample({{"x", {5, 64}, codes, Fill::codes},
               {"scale", {5, 1}, DType::f32, Fill::codes},
               {"weight", {33, 64}, codes, Fill::codes},
               {"weight_scale", {33, 1}, DType::f32, Fill::codes},
               {"bias", {33}, DType::f32}});
    op.sample({{"x", {1, 96}, codes, Fill::codes},
               {"scale", {1}, DType::f32, Fill::codes},
               {"weight", {48, 96}, codes, Fill::codes},
               {"weight_scale", {1}, DType::f32, Fill::codes}},
              {{"dtype", DType::bf16}});
  }
  op.sample({{"x", {6, 64}, DType::f8e4m3, Fill::codes},
             {"scale", {6, 1}, DType::f32, Fill::codes},
             {"weight", {48, 64}, DType::f8e4m3, Fill::codes},
             {"weight_scale", {48, 1}, DType::f32, Fill::codes}});
  op.sample({{"x", {3, 64}, DType::f8e4m3fnuz},
             {"scale", {}, DType::f32, Fill::codes},
             {"weight", {40, 64}, DType::f8e4m3fnuz},
             {"weight_scale", {40}, DType::f32, Fill::codes}});
  tolerate_free_order(op);
}
