#include "ops/fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant.h"

#include "ops/fused_quant.h"

namespace weft {
namespace {

Results call_fused_with_token_fp8(CallSite site, bool inplace, const Value& x, const Value& x_residual,
                                  const Value& weight, const Value& scale_ub, Scalar epsilon,
                                  std::optional<std::int64_t> variance_size, std::string_view intermediate,
                                  std::optional<double> minimum_scale, std::string_view scale_by,
                                  std::string_view codes_by, DType dtype) {
  return call(site, "fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant", {x, x_residual, weight, scale_ub},
              joined(norm_attributes(epsilon, variance_size), intermediate_attribute(intermediate),
                     token_fp8_attributes(minimum_scale, scale_by, codes_by, dtype)),
              inplace);
}

}  // namespace

std::tuple<Value, Value, Value> fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant(
    const Value& x, const Value& x_residual, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::optional<std::int64_t> variance_size, std::string_view intermediate, std::optional<double> minimum_scale,
    std::string_view scale_by, std::string_view codes_by, DType dtype, CallSite site) {
  return call_fused_with_token_fp8(site, false, x, x_residual, weight, scale_ub, epsilon, variance_size, intermediate,
                                   minimum_scale, scale_by, codes_by, dtype);
}

std::tuple<Value, Value, Value> fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, const Value& scale_ub, Scalar epsilon,
    std::optional<std::int64_t> variance_size, std::string_view intermediate, std::optional<double> minimum_scale,
    std::string_view scale_by, std::string_view codes_by, DType dtype, CallSite site) {
  return call_fused_with_token_fp8(site, true, x, x_residual, weight, scale_ub, epsilon, variance_size, intermediate,
                                   minimum_scale, scale_by, codes_by, dtype);
}

}  // namespace weft

OP(fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant) {
  using Typed = std::tuple<Value, Value, Value>(const Value&, const Value&, const Value&, const Value&, Scalar,
                                                std::optional<std::int64_t>, std::string_view, std::optional<double>,
                                                std::string_view, std::string_view, DType, CallSite);
  weft::define_fused_add_rms_norm_quant(op, "fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant",
                                        weft::token_fp8_tail());
  op.function(static_cast<Typed*>(&weft::fused_add_rms_norm_dynamic_per_token_scaled_fp8_quant));
}
