#include "ops/mxfp8_quantize.h"

#include <limits>

#include "ops/abs.h"
#include "ops/amax.h"
#include "ops/div.h"
#include "ops/div_scalar.h"
#include "ops/microscaling.h"
#include "ops/round_to_power_of_two.h"
#include "ops/swizzle_scale.h"

namespace weft {

std::pair<Value, Value> mxfp8_quantize(const Value& x, bool swizzled_scales, CallSite site) {
  return call(site, "mxfp8_quantize", {x}, {{"swizzled_scales", swizzled_scales}});
}

}  // namespace weft

OP(mxfp8_quantize) {
  op.schema("mxfp8_quantize(Tensor x, bool swizzled_scales=False) -> (Tensor, Tensor)").function(&weft::mxfp8_quantize);
  op.checks([](const OpRequest& request) { check_blocks(request.operand(0), "mxfp8_quantize", kMicroscalingGroup); });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    constexpr double kLeast = std::numeric_limits<float>::min();
    const Value x = blocks_of(cast(v[0], DType::f32), kMicroscalingGroup);
    const Value magnitude = clamp(amax(abs(x)), kLeast, std::nullopt);
    const Value power = round_to_power_of_two(div_scalar(magnitude, kLargestFp8));
    const Value scale = clamp(power, kSmallestE8m0, kLargestE8m0);
    const Value codes = cast(clamp(div(x, scale), -kLargestFp8, kLargestFp8), DType::f8e4m3);
    const Value scales = reshape(cast(scale, DType::f8e8m0), block_counts(v[0].meta().shape, kMicroscalingGroup));
    return Values{reshape(codes, v[0].meta().shape),
                  a.at("swizzled_scales").boolean() ? swizzle_scale(scales) : scales};
  });
  op.quantizes(mxfp8_dynamic());
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {3, 64}}}, {{"swizzled_scales", true}});
  op.sample({{"x", {2, 32}, std::nullopt, Fill::zero}});
  op.tolerance(DType::f8e4m3, {});
}
