#include "ops/silu_and_mul_dynamic_per_token_scaled_fp8_quant.h"

#include "ops/fused_quant.h"
#include "ops/silu_and_mul.h"

namespace weft {

std::pair<Value, Value> silu_and_mul_dynamic_per_token_scaled_fp8_quant(
    const Value& x, const Value& scale_ub, std::string_view intermediate, std::optional<double> minimum_scale,
    std::string_view scale_by, std::string_view codes_by, DType dtype, CallSite site) {
  return call(
      site, "silu_and_mul_dynamic_per_token_scaled_fp8_quant", {x, scale_ub},
      joined(intermediate_attribute(intermediate), token_fp8_attributes(minimum_scale, scale_by, codes_by, dtype)));
}

}  // namespace weft

OP(silu_and_mul_dynamic_per_token_scaled_fp8_quant) {
  weft::define_gated_quant(op, "silu_and_mul_dynamic_per_token_scaled_fp8_quant", &weft::silu_and_mul,
                           weft::token_fp8_tail());
  op.function(&weft::silu_and_mul_dynamic_per_token_scaled_fp8_quant);
}
