#include "ops/gelu_tanh_and_mul_per_token_group_quant_int8.h"

#include "ops/gated_group_quant_int8.h"
#include "ops/gelu_tanh_and_mul.h"

namespace weft {

std::pair<Value, Value> gelu_tanh_and_mul_per_token_group_quant_int8(const Value& x, std::int64_t group_size,
                                                                     Scalar eps, std::string_view rounding,
                                                                     CallSite site) {
  return call_gated_group_quant_int8(site, "gelu_tanh_and_mul_per_token_group_quant_int8", x, group_size, eps,
                                     rounding);
}

}  // namespace weft

OP(gelu_tanh_and_mul_per_token_group_quant_int8) {
  weft::define_gated_group_quant_int8(op, "gelu_tanh_and_mul_per_token_group_quant_int8", &weft::gelu_tanh_and_mul,
                                      &weft::gelu_tanh_and_mul_per_token_group_quant_int8);
}
