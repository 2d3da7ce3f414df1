#include "ops/gelu_and_mul_static_scaled_fp8_quant.h"

#include "ops/fused_quant.h"
#include "ops/gelu_and_mul.h"

namespace weft {

Value gelu_and_mul_static_scaled_fp8_quant(const Value& x, const Value& scale, std::string_view intermediate,
                                           std::optional<Shape> group_shape, DType dtype, CallSite site) {
  return call(site, "gelu_and_mul_static_scaled_fp8_quant", {x, scale},
              joined(intermediate_attribute(intermediate), static_fp8_attributes(group_shape, dtype)))[0];
}

}  // namespace weft

OP(gelu_and_mul_static_scaled_fp8_quant) {
  weft::define_gated_quant(op, "gelu_and_mul_static_scaled_fp8_quant", &weft::gelu_and_mul, weft::static_fp8_tail());
  op.function(&weft::gelu_and_mul_static_scaled_fp8_quant);
}
