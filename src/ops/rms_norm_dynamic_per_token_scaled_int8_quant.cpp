#include "ops/rms_norm_dynamic_per_token_scaled_int8_quant.h"

#include "ops/fused_quant.h"

namespace weft {

std::pair<Value, Value> rms_norm_dynamic_per_token_scaled_int8_quant(const Value& x, const Value& weight,
                                                                     Scalar epsilon,
                                                                     std::optional<std::int64_t> variance_size,
                                                                     CallSite site) {
  return call(site, "rms_norm_dynamic_per_token_scaled_int8_quant", {x, weight},
              norm_attributes(epsilon, variance_size));
}

}  // namespace weft

OP(rms_norm_dynamic_per_token_scaled_int8_quant) {
  weft::define_rms_norm_quant(op, "rms_norm_dynamic_per_token_scaled_int8_quant", weft::token_int8_tail());
  op.function(&weft::rms_norm_dynamic_per_token_scaled_int8_quant);
}
