#include "ops/rms_norm_per_token_group_quant_fp8.h"

#include "ops/fused_quant.h"

namespace weft {

std::pair<Value, Value> rms_norm_per_token_group_quant_fp8(
    const Value& x, const Value& weight, const Value& scale_ub, Scalar epsilon, std::int64_t group_size,
    std::optional<std::int64_t> variance_size, Scalar eps, bool use_ue8m0, bool column_major_scales,
    bool tma_aligned_scales, Scalar minimum_scale, Scalar ue8m0_minimum, std::string_view scale_by,
    std::string_view scale_ub_of, bool short_last_group, DType dtype, CallSite site) {
  return call(
      site, "rms_norm_per_token_group_quant_fp8", {x, weight, scale_ub},
      joined(norm_attributes(epsilon, variance_size),
             group_fp8_attributes(group_size, eps, use_ue8m0, column_major_scales, tma_aligned_scales, minimum_scale,
                                  ue8m0_minimum, scale_by, scale_ub_of, short_last_group, dtype)));
}

}  // namespace weft

OP(rms_norm_per_token_group_quant_fp8) {
  weft::define_rms_norm_quant(op, "rms_norm_per_token_group_quant_fp8", weft::group_fp8_tail());
  op.function(&weft::rms_norm_per_token_group_quant_fp8);
}
