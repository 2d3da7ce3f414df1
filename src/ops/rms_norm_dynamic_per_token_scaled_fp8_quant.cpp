#include "ops/rms_norm_dynamic_per_token_scaled_fp8_quant.h"

#include "ops/fused_quant.h"

namespace weft {

std::pair<Value, Value> rms_norm_dynamic_per_token_scaled_fp8_quant(
    const Value& x, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::optional<std::int64_t> variance_size, std::optional<double> minimum_scale, std::string_view scale_by,
    std::string_view codes_by, DType dtype, CallSite site) {
  return call(
      site, "rms_norm_dynamic_per_token_scaled_fp8_quant", {x, weight, scale_ub},
      joined(norm_attributes(epsilon, variance_size), token_fp8_attributes(minimum_scale, scale_by, codes_by, dtype)));
}

}  // namespace weft

OP(rms_norm_dynamic_per_token_scaled_fp8_quant) {
  weft::define_rms_norm_quant(op, "rms_norm_dynamic_per_token_scaled_fp8_quant", weft::token_fp8_tail());
  op.function(&weft::rms_norm_dynamic_per_token_scaled_fp8_quant);
}
