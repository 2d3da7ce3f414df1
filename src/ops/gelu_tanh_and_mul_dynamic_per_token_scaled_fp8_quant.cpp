#include "ops/gelu_tanh_and_mul_dynamic_per_token_scaled_fp8_quant.h"

#include "ops/fused_quant.h"
#include "ops/gelu_tanh_and_mul.h"

namespace weft {

std::pair<Value, Value> gelu_tanh_and_mul_dynamic_per_token_scaled_fp8_quant(
    const Value& x, const Value& scale_ub, std::string_view intermediate, std::optional<double> minimum_scale,
    std::string_view scale_by, std::string_view codes_by, DType dtype, CallSite site) {
  return call(
      site, "gelu_tanh_and_mul_dynamic_per_token_scaled_fp8_quant", {x, scale_ub},
      joined(intermediate_attribute(intermediate), token_fp8_attributes(minimum_scale, scale_by, codes_by, dtype)));
}

}  // namespace weft

OP(gelu_tanh_and_mul_dynamic_per_token_scaled_fp8_quant) {
  weft::define_gated_quant(op, "gelu_tanh_and_mul_dynamic_per_token_scaled_fp8_quant", &weft::gelu_tanh_and_mul,
                           weft::token_fp8_tail());
  op.function(&weft::gelu_tanh_and_mul_dynamic_per_token_scaled_fp8_quant);
}
