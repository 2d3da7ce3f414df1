#include "ops/mxfp4_dequantize.h"

#include "ops/microscaling.h"

namespace weft {

Value mxfp4_dequantize(const Value& x, const Value& scale, DType dtype, CallSite site) {
  return call(site, "mxfp4_dequantize", {x, scale}, {{"dtype", dtype}})[0];
}

}  // namespace weft

OP(mxfp4_dequantize) {
  op.schema("mxfp4_dequantize(Tensor x, Tensor scale, ScalarType dtype=bf16) -> Tensor")
      .function(&weft::mxfp4_dequantize);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    check_dtype(x, DType::f4e2m1, "mxfp4_dequantize", "x");
    check_blocks(x, "mxfp4_dequantize", kMicroscalingGroup);
    check_dtype(request.operand(1), DType::f8e8m0, "mxfp4_dequantize", "scale");
    check_block_scales(request.operand(1), x.shape, kMicroscalingGroup, false, "mxfp4_dequantize", "scale");
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    return Values{cast(scaled_blocks(v[0], cast(v[1], DType::f32), kMicroscalingGroup), a.at("dtype").dtype())};
  });
  op.sample({{"x", {5, 96}, DType::f4e2m1}, {"scale", {5, 3}, DType::f8e8m0, Fill::positive}}, {{"dtype", DType::f32}});
  op.sample({{"x", {1, 64}, DType::f4e2m1}, {"scale", {1, 2}, DType::f8e8m0, Fill::positive}});
  op.tolerance(DType::f32, {});
  op.tolerance(DType::bf16, {});
}
