#include "ops/scaled_fp4_dequant.h"

#include "ops/div.h"
#include "ops/microscaling.h"
#include "ops/unswizzle_scale.h"

namespace weft {

Value scaled_fp4_dequant(const Value& x, const Value& scale, const Value& global_scale, bool swizzled_scales,
                         bool divide_by_global_scale, DType dtype, CallSite site) {
  return call(
      site, "scaled_fp4_dequant", {x, scale, global_scale},
      {{"swizzled_scales", swizzled_scales}, {"divide_by_global_scale", divide_by_global_scale}, {"dtype", dtype}})[0];
}

}  // namespace weft

OP(scaled_fp4_dequant) {
  op.schema(
        "scaled_fp4_dequant(Tensor x, Tensor scale, Tensor global_scale, bool swizzled_scales=True, bool "
        "divide_by_global_scale=False, ScalarType dtype=bf16) -> Tensor")
      .function(&weft::scaled_fp4_dequant);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    check_dtype(x, DType::f4e2m1, "scaled_fp4_dequant", "x");
    check_blocks(x, "scaled_fp4_dequant", kNvfp4Group);
    check_dtype(request.operand(1), DType::f8e4m3, "scaled_fp4_dequant", "scale");
    check_block_scales(request.operand(1), x.shape, kNvfp4Group, request.attributes.at("swizzled_scales").boolean(),
                       "scaled_fp4_dequant", "scale");
    check_one_scale(request.operand(2), "scaled_fp4_dequant", "global_scale");
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Shape counts = block_counts(v[0].meta().shape, kNvfp4Group);
    const Value plain = a.at("swizzled_scales").boolean() ? unswizzle_scale(v[1], counts) : v[1];
    const Value scale = cast(plain, DType::f32), global_scale = reshape(v[2], {1});
    const bool divide = a.at("divide_by_global_scale").boolean();
    const Value width = divide ? div(scale, global_scale) : mul(scale, global_scale);
    return Values{cast(scaled_blocks(v[0], width, kNvfp4Group), a.at("dtype").dtype())};
  });
  op.sample({{"x", {5, 96}, DType::f4e2m1},
             {"scale", {5, 6}, DType::f8e4m3, Fill::positive},
             {"global_scale", {1}, DType::f32, Fill::positive}},
            {{"swizzled_scales", false}, {"dtype", DType::f32}});
  op.sample({{"x", {1, 64}, DType::f4e2m1},
             {"scale", {1, 128, 4}, DType::f8e4m3, Fill::positive},
             {"global_scale", {}, DType::f32, Fill::positive}},
            {{"divide_by_global_scale", true}});
  op.tolerance(DType::f32, {});
  op.tolerance(DType::bf16, {});
}
