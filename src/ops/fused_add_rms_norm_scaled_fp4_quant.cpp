#include "ops/fused_add_rms_norm_scaled_fp4_quant.h"

#include "ops/fused_quant.h"

namespace weft {
namespace {

Results call_fused_with_nvfp4(CallSite site, bool inplace, const Value& x, const Value& x_residual, const Value& weight,
                              const Value& global_scale, Scalar epsilon, std::optional<std::int64_t> variance_size,
                              std::string_view intermediate, bool swizzled_scales) {
  return call(site, "fused_add_rms_norm_scaled_fp4_quant", {x, x_residual, weight, global_scale},
              joined(norm_attributes(epsilon, variance_size), intermediate_attribute(intermediate),
                     fp4_attributes(swizzled_scales)),
              inplace);
}

}  // namespace

std::tuple<Value, Value, Value> fused_add_rms_norm_scaled_fp4_quant(
    const Value& x, const Value& x_residual, const Value& weight, const Value& global_scale, Scalar epsilon,
    std::optional<std::int64_t> variance_size, std::string_view intermediate, bool swizzled_scales, CallSite site) {
  return call_fused_with_nvfp4(site, false, x, x_residual, weight, global_scale, epsilon, variance_size, intermediate,
                               swizzled_scales);
}

std::tuple<Value, Value, Value> fused_add_rms_norm_scaled_fp4_quant(MaybeInplace, const Value& x,
                                                                    const Value& x_residual, const Value& weight,
                                                                    const Value& global_scale, Scalar epsilon,
                                                                    std::optional<std::int64_t> variance_size,
                                                                    std::string_view intermediate, bool swizzled_scales,
                                                                    CallSite site) {
  return call_fused_with_nvfp4(site, true, x, x_residual, weight, global_scale, epsilon, variance_size, intermediate,
                               swizzled_scales);
}

}  // namespace weft

OP(fused_add_rms_norm_scaled_fp4_quant) {
  using Typed = std::tuple<Value, Value, Value>(const Value&, const Value&, const Value&, const Value&, Scalar,
                                                std::optional<std::int64_t>, std::string_view, bool, CallSite);
  weft::define_fused_add_rms_norm_quant(op, "fused_add_rms_norm_scaled_fp4_quant", weft::nvfp4_tail());
  op.function(static_cast<Typed*>(&weft::fused_add_rms_norm_scaled_fp4_quant));
}
