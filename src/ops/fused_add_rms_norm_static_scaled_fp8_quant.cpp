#include "ops/fused_add_rms_norm_static_scaled_fp8_quant.h"

#include "ops/fused_quant.h"

namespace weft {
namespace {

Results call_fused_with_static_fp8(CallSite site, bool inplace, const Value& x, const Value& x_residual,
                                   const Value& weight, const Value& scale, Scalar epsilon,
                                   std::optional<std::int64_t> variance_size, std::string_view intermediate,
                                   const std::optional<Shape>& group_shape, DType dtype) {
  return call(site, "fused_add_rms_norm_static_scaled_fp8_quant", {x, x_residual, weight, scale},
              joined(norm_attributes(epsilon, variance_size), intermediate_attribute(intermediate),
                     static_fp8_attributes(group_shape, dtype)),
              inplace);
}

}  // namespace

std::pair<Value, Value> fused_add_rms_norm_static_scaled_fp8_quant(
    const Value& x, const Value& x_residual, const Value& weight, const Value& scale, Scalar epsilon,
    std::optional<std::int64_t> variance_size, std::string_view intermediate, std::optional<Shape> group_shape,
    DType dtype, CallSite site) {
  return call_fused_with_static_fp8(site, false, x, x_residual, weight, scale, epsilon, variance_size, intermediate,
                                    group_shape, dtype);
}

std::pair<Value, Value> fused_add_rms_norm_static_scaled_fp8_quant(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, const Value& scale, Scalar epsilon,
    std::optional<std::int64_t> variance_size, std::string_view intermediate, std::optional<Shape> group_shape,
    DType dtype, CallSite site) {
  return call_fused_with_static_fp8(site, true, x, x_residual, weight, scale, epsilon, variance_size, intermediate,
                                    group_shape, dtype);
}

}  // namespace weft

OP(fused_add_rms_norm_static_scaled_fp8_quant) {
  using Typed =
      std::pair<Value, Value>(const Value&, const Value&, const Value&, const Value&, Scalar,
                              std::optional<std::int64_t>, std::string_view, std::optional<Shape>, DType, CallSite);
  weft::define_fused_add_rms_norm_quant(op, "fused_add_rms_norm_static_scaled_fp8_quant", weft::static_fp8_tail());
  op.function(static_cast<Typed*>(&weft::fused_add_rms_norm_static_scaled_fp8_quant));
}
