#include "ops/rms_norm_scaled_fp4_quant.h"

#include "ops/fused_quant.h"

namespace weft {

std::pair<Value, Value> rms_norm_scaled_fp4_quant(const Value& x, const Value& weight, const Value& global_scale,
                                                  Scalar epsilon, std::optional<std::int64_t> variance_size,
                                                  bool swizzled_scales, CallSite site) {
  return call(site, "rms_norm_scaled_fp4_quant", {x, weight, global_scale},
              joined(norm_attributes(epsilon, variance_size), fp4_attributes(swizzled_scales)));
}

}  // namespace weft

OP(rms_norm_scaled_fp4_quant) {
  weft::define_rms_norm_quant(op, "rms_norm_scaled_fp4_quant", weft::nvfp4_tail());
  op.function(&weft::rms_norm_scaled_fp4_quant);
}
