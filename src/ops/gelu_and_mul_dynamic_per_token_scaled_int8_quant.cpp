#include "ops/gelu_and_mul_dynamic_per_token_scaled_int8_quant.h"

#include "ops/fused_quant.h"
#include "ops/gelu_and_mul.h"

namespace weft {

std::pair<Value, Value> gelu_and_mul_dynamic_per_token_scaled_int8_quant(const Value& x, std::string_view intermediate,
                                                                         CallSite site) {
  return call(site, "gelu_and_mul_dynamic_per_token_scaled_int8_quant", {x},
              {{"intermediate", WordView{intermediate}}});
}

}  // namespace weft

OP(gelu_and_mul_dynamic_per_token_scaled_int8_quant) {
  weft::define_gated_quant(op, "gelu_and_mul_dynamic_per_token_scaled_int8_quant", &weft::gelu_and_mul,
                           weft::token_int8_tail());
  op.function(&weft::gelu_and_mul_dynamic_per_token_scaled_int8_quant);
}
