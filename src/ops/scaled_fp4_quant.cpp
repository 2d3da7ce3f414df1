#include "ops/scaled_fp4_quant.h"

#include "ir/shape_rules.h"
#include "ops/abs.h"
#include "ops/add_scalar.h"
#include "ops/amax.h"
#include "ops/microscaling.h"
#include "ops/mul.h"
#include "ops/mul_scalar.h"
#include "ops/reciprocal.h"
#include "ops/reshape.h"
#include "ops/swizzle_scale.h"

namespace weft {

std::pair<Value, Value> scaled_fp4_quant(const Value& x, const Value& global_scale, bool swizzled_scales,
                                         CallSite site) {
  return call(site, "scaled_fp4_quant", {x, global_scale}, {{"swizzled_scales", swizzled_scales}});
}

void check_fp4(const OpRequest& request, const char* op, const Shape& shape, std::size_t global_scale) {
  check_blocks(Meta::tensor(DType::f32, shape), op, kNvfp4Group);
  check_one_scale(request.operand(global_scale), op, "global_scale");
}

}  // namespace weft

OP(scaled_fp4_quant) {
  op.schema("scaled_fp4_quant(Tensor x, Tensor global_scale, bool swizzled_scales=True) -> (Tensor, Tensor)")
      .function(&weft::scaled_fp4_quant);
  op.checks([](const OpRequest& request) {
    require_floating(request.operand(0), "scaled_fp4_quant", "x");
    check_fp4(request, "scaled_fp4_quant", request.operand(0).shape, 1);
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Value x = blocks_of(cast(v[0], DType::f32), kNvfp4Group);
    const Value global_scale = reshape(v[1], {1});
    const Value magnitude = mul_scalar(amax(abs(x)), 1 / kLargestFp4);
    const Value scale = cast(clamp(mul(magnitude, global_scale), -kLargestFp8, kLargestFp8), DType::f8e4m3);
    const Value width = mul(cast(scale, DType::f32), reciprocal(global_scale, 0.0));
    // Adding 0 turns -0 into +0: a zero has no sign in vLLM's definition.
    const Value codes = fp4_codes(add_scalar(mul(x, reciprocal(width, 0.0)), 0.0), v[0].meta().shape);
    const Value scales = reshape(scale, block_counts(v[0].meta().shape, kNvfp4Group));
    return Values{codes, a.at("swizzled_scales").boolean() ? swizzle_scale(scales) : scales};
  });
  op.quantizes(nvfp4_dynamic());
  op.sample({{"x", {5, 96}}, {"global_scale", {1}, DType::f32, Fill::positive}}, {{"swizzled_scales", false}});
  op.sample({{"x", {3, 64}}, {"global_scale", {}, DType::f32, Fill::positive}});
  op.sample({{"x", {2, 32}, std::nullopt, Fill::zero}, {"global_scale", {1}, DType::f32, Fill::positive}});
  op.tolerance(DType::f4e2m1, {});
  op.tolerance(DType::f8e4m3, {});
}
