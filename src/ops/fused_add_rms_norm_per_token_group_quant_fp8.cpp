#include "ops/fused_add_rms_norm_per_token_group_quant_fp8.h"

#include "ops/fused_quant.h"

namespace weft {
namespace {

Results call_fused_with_group_fp8(CallSite site, bool inplace, const Value& x, const Value& x_residual,
                                  const Value& weight, const Value& scale_ub, Scalar epsilon, std::int64_t group_size,
                                  std::optional<std::int64_t> variance_size, std::string_view intermediate, Scalar eps,
                                  bool use_ue8m0, bool column_major_scales, bool tma_aligned_scales,
                                  Scalar minimum_scale, Scalar ue8m0_minimum, std::string_view scale_by,
                                  std::string_view scale_ub_of, bool short_last_group, DType dtype) {
  return call(
      site, "fused_add_rms_norm_per_token_group_quant_fp8", {x, x_residual, weight, scale_ub},
      joined(norm_attributes(epsilon, variance_size), intermediate_attribute(intermediate),
             group_fp8_attributes(group_size, eps, use_ue8m0, column_major_scales, tma_aligned_scales, minimum_scale,
                                  ue8m0_minimum, scale_by, scale_ub_of, short_last_group, dtype)),
      inplace);
}

}  // namespace

std::tuple<Value, Value, Value> fused_add_rms_norm_per_token_group_quant_fp8(
    const Value& x, const Value& x_residual, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::int64_t group_size, std::optional<std::int64_t> variance_size, std::string_view intermediate, Scalar eps,
    bool use_ue8m0, bool column_major_scales, bool tma_aligned_scales, Scalar minimum_scale, Scalar ue8m0_minimum,
    std::string_view scale_by, std::string_view scale_ub_of, bool short_last_group, DType dtype, CallSite site) {
  return call_fused_with_group_fp8(site, false, x, x_residual, weight, scale_ub, epsilon, group_size, variance_size,
                                   intermediate, eps, use_ue8m0, column_major_scales, tma_aligned_scales, minimum_scale,
                                   ue8m0_minimum, scale_by, scale_ub_of, short_last_group, dtype);
}

std::tuple<Value, Value, Value> fused_add_rms_norm_per_token_group_quant_fp8(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::int64_t group_size, std::optional<std::int64_t> variance_size, std::string_view intermediate, Scalar eps,
    bool use_ue8m0, bool column_major_scales, bool tma_aligned_scales, Scalar minimum_scale, Scalar ue8m0_minimum,
    std::string_view scale_by, std::string_view scale_ub_of, bool short_last_group, DType dtype, CallSite site) {
  return call_fused_with_group_fp8(site, true, x, x_residual, weight, scale_ub, epsilon, group_size, variance_size,
                                   intermediate, eps, use_ue8m0, column_major_scales, tma_aligned_scales, minimum_scale,
                                   ue8m0_minimum, scale_by, scale_ub_of, short_last_group, dtype);
}

}  // namespace weft

OP(fused_add_rms_norm_per_token_group_quant_fp8) {
  using Typed =
      std::tuple<Value, Value, Value>(const Value&, const Value&, const Value&, const Value&, Scalar, std::int64_t,
                                      std::optional<std::int64_t>, std::string_view, Scalar, bool, bool, bool, Scalar,
                                      Scalar, std::string_view, std::string_view, bool, DType, CallSite);
  weft::define_fused_add_rms_norm_quant(op, "fused_add_rms_norm_per_token_group_quant_fp8", weft::group_fp8_tail());
  op.function(static_cast<Typed*>(&weft::fused_add_rms_norm_per_token_group_quant_fp8));
}
