#include "ops/mxfp4_quantize.h"

#include "ops/abs.h"
#include "ops/add.h"
#include "ops/amax.h"
#include "ops/div.h"
#include "ops/microscaling.h"
#include "ops/mul_scalar.h"
#include "ops/round_to_power_of_two.h"

namespace weft {

std::pair<Value, Value> mxfp4_quantize(const Value& x, CallSite site) { return call(site, "mxfp4_quantize", {x}, {}); }

}  // namespace weft

OP(mxfp4_quantize) {
  op.schema("mxfp4_quantize(Tensor x) -> (Tensor, Tensor)").function(&weft::mxfp4_quantize);
  op.checks([](const OpRequest& request) { check_blocks(request.operand(0), "mxfp4_quantize", kMicroscalingGroup); });
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const Value x = blocks_of(cast(v[0], DType::f32), kMicroscalingGroup);
    const Value magnitude = amax(abs(x));
    // Adding a quarter of the magnitude's power of two rounds magnitudes from 1.75 times that power to the next power.
    // After scaling, 1.75 is 7, the midpoint of 6 (the largest FP4 value) and 8.
    const Value power = round_to_power_of_two(magnitude, "down");
    const Value rounded = round_to_power_of_two(add(magnitude, mul_scalar(power, 0.25)), "down");
    const Value scale = clamp(mul_scalar(rounded, 0.25), kSmallestE8m0, kLargestE8m0);
    return Values{fp4_codes(div(x, scale), v[0].meta().shape),
                  reshape(cast(scale, DType::f8e8m0), block_counts(v[0].meta().shape, kMicroscalingGroup))};
  });
  op.quantizes(mxfp4_dynamic());
  op.sample({{"x", {5, 96}}});
  op.sample({{"x", {2, 32}, std::nullopt, Fill::zero}});
  op.tolerance(DType::f4e2m1, {});
}
