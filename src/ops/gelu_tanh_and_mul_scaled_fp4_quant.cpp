#include "ops/gelu_tanh_and_mul_scaled_fp4_quant.h"

#include "ops/fused_quant.h"
#include "ops/gelu_tanh_and_mul.h"

namespace weft {

std::pair<Value, Value> gelu_tanh_and_mul_scaled_fp4_quant(const Value& x, const Value& global_scale,
                                                           std::string_view intermediate, bool swizzled_scales,
                                                           CallSite site) {
  return call(site, "gelu_tanh_and_mul_scaled_fp4_quant", {x, global_scale},
              joined(intermediate_attribute(intermediate), fp4_attributes(swizzled_scales)));
}

}  // namespace weft

OP(gelu_tanh_and_mul_scaled_fp4_quant) {
  weft::define_gated_quant(op, "gelu_tanh_and_mul_scaled_fp4_quant", &weft::gelu_tanh_and_mul, weft::nvfp4_tail());
  op.function(&weft::gelu_tanh_and_mul_scaled_fp4_quant);
}
