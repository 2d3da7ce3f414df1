#include "ops/silu_and_mul_scaled_fp4_quant.h"

#include "ops/fused_quant.h"
#include "ops/silu_and_mul.h"

namespace weft {

std::pair<Value, Value> silu_and_mul_scaled_fp4_quant(const Value& x, const Value& global_scale,
                                                      std::string_view intermediate, bool swizzled_scales,
                                                      CallSite site) {
  return call(site, "silu_and_mul_scaled_fp4_quant", {x, global_scale},
              joined(intermediate_attribute(intermediate), fp4_attributes(swizzled_scales)));
}

}  // namespace weft

OP(silu_and_mul_scaled_fp4_quant) {
  weft::define_gated_quant(op, "silu_and_mul_scaled_fp4_quant", &weft::silu_and_mul, weft::nvfp4_tail());
  op.function(&weft::silu_and_mul_scaled_fp4_quant);
}
