#include "ops/mxfp8_dequantize.h"

#include "ops/microscaling.h"
#include "ops/unswizzle_scale.h"

namespace weft {

Value mxfp8_dequantize(const Value& x, const Value& scale, bool swizzled_scales, DType dtype, CallSite site) {
  return call(site, "mxfp8_dequantize", {x, scale}, {{"swizzled_scales", swizzled_scales}, {"dtype", dtype}})[0];
}

}  // namespace weft

OP(mxfp8_dequantize) {
  op.schema("mxfp8_dequantize(Tensor x, Tensor scale, bool swizzled_scales=False, ScalarType dtype=bf16) -> Tensor")
      .function(&weft::mxfp8_dequantize);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    check_dtype(x, DType::f8e4m3, "mxfp8_dequantize", "x");
    check_blocks(x, "mxfp8_dequantize", kMicroscalingGroup);
    check_dtype(request.operand(1), DType::f8e8m0, "mxfp8_dequantize", "scale");
    check_block_scales(request.operand(1), x.shape, kMicroscalingGroup,
                       request.attributes.at("swizzled_scales").boolean(), "mxfp8_dequantize", "scale");
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Shape counts = block_counts(v[0].meta().shape, kMicroscalingGroup);
    const Value plain = a.at("swizzled_scales").boolean() ? unswizzle_scale(v[1], counts) : v[1];
    return Values{cast(scaled_blocks(v[0], cast(plain, DType::f32), kMicroscalingGroup), a.at("dtype").dtype())};
  });
  op.sample({{"x", {5, 96}, DType::f8e4m3}, {"scale", {5, 3}, DType::f8e8m0, Fill::positive}}, {{"dtype", DType::f32}});
  op.sample({{"x", {1, 64}, DType::f8e4m3}, {"scale", {1, 128, 4}, DType::f8e8m0, Fill::positive}},
            {{"swizzled_scales", true}});
  op.tolerance(DType::f32, {});
  op.tolerance(DType::bf16, {});
}
