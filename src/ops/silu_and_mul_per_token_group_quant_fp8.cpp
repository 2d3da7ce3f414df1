#include "ops/silu_and_mul_per_token_group_quant_fp8.h"

#include "ops/fused_quant.h"
#include "ops/silu_and_mul.h"

namespace weft {

std::pair<Value, Value> silu_and_mul_per_token_group_quant_fp8(
    const Value& x, const Value& scale_ub, std::int64_t group_size, std::string_view intermediate, Scalar eps,
    bool use_ue8m0, bool column_major_scales, bool tma_aligned_scales, Scalar minimum_scale, Scalar ue8m0_minimum,
    std::string_view scale_by, std::string_view scale_ub_of, bool short_last_group, DType dtype, CallSite site) {
  return call(
      site, "silu_and_mul_per_token_group_quant_fp8", {x, scale_ub},
      joined(intermediate_attribute(intermediate),
             group_fp8_attributes(group_size, eps, use_ue8m0, column_major_scales, tma_aligned_scales, minimum_scale,
                                  ue8m0_minimum, scale_by, scale_ub_of, short_last_group, dtype)));
}

}  // namespace weft

OP(silu_and_mul_per_token_group_quant_fp8) {
  weft::define_gated_quant(op, "silu_and_mul_per_token_group_quant_fp8", &weft::silu_and_mul, weft::group_fp8_tail());
  op.function(&weft::silu_and_mul_per_token_group_quant_fp8);
}
