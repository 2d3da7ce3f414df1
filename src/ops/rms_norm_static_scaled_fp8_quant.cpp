#include "ops/rms_norm_static_scaled_fp8_quant.h"

#include "ops/fused_quant.h"

namespace weft {

Value rms_norm_static_scaled_fp8_quant(const Value& x, const Value& weight, const Value& scale, Scalar epsilon,
                                       std::optional<std::int64_t> variance_size, std::optional<Shape> group_shape,
                                       DType dtype, CallSite site) {
  return call(site, "rms_norm_static_scaled_fp8_quant", {x, weight, scale},
              joined(norm_attributes(epsilon, variance_size), static_fp8_attributes(group_shape, dtype)))[0];
}

}  // namespace weft

OP(rms_norm_static_scaled_fp8_quant) {
  weft::define_rms_norm_quant(op, "rms_norm_static_scaled_fp8_quant", weft::static_fp8_tail());
  op.function(&weft::rms_norm_static_scaled_fp8_quant);
}
