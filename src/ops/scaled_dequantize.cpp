#include "ops/scaled_dequantize.h"

#include "base/error.h"
#include "ir/op.h"
#include "ops/cast.h"
#include "ops/mul.h"
#include "ops/spread_blocks.h"

namespace weft {

Value scaled_dequantize(const Value& x, const Value& scale, Shape group_shape, DType dtype, CallSite site) {
  return call(site, "scaled_dequantize", {x, scale}, {{"group_shape", group_shape}, {"dtype", dtype}})[0];
}

}  // namespace weft

OP(scaled_dequantize) {
  op.schema("scaled_dequantize(Tensor x, Tensor scale, int[] group_shape, ScalarType dtype=f32) -> Tensor")
      .function(&weft::scaled_dequantize);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Meta& scale = request.operand(1);
    USER_CHECK(x.is_tensor() && x.rank() == 2 && bytes_of(x.dtype, 2) == 2,
               "[scaled_dequantize] x must be a matrix of one-byte codes, but is {}", x.text());
    USER_CHECK(scale.is_tensor() && scale.dtype == DType::f32, "[scaled_dequantize] scale must be of f32, but is {}",
               scale.text());
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Value scale = spread_blocks(v[1], v[0].meta().shape, a.at("group_shape").as_shape());
    return Values{cast(mul(cast(v[0], DType::f32), scale), a.at("dtype").dtype())};
  });
  op.rows_of(nullptr);  // rows of a block share its scale
  op.sample({{"x", {5, 100}, DType::f8e4m3}, {"scale", {5, 4}, DType::f32, Fill::codes}},
            {{"group_shape", Attribute::shape({1, 32})}});
  op.sample({{"x", {40, 33}, DType::i8, Fill::codes}, {"scale", {3, 3}, DType::f32, Fill::codes}},
            {{"group_shape", Attribute::shape({16, 16})}, {"dtype", DType::bf16}});
  op.tolerance(DType::f32, {});
  op.tolerance(DType::bf16, {});
}
