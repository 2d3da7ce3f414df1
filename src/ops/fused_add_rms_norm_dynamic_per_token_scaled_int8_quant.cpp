#include "ops/fused_add_rms_norm_dynamic_per_token_scaled_int8_quant.h"

#include "ops/fused_quant.h"

namespace weft {
namespace {

Results call_fused_with_token_int8(CallSite site, bool inplace, const Value& x, const Value& x_residual,
                                   const Value& weight, Scalar epsilon, std::optional<std::int64_t> variance_size,
                                   std::string_view intermediate) {
  return call(site, "fused_add_rms_norm_dynamic_per_token_scaled_int8_quant", {x, x_residual, weight},
              joined(norm_attributes(epsilon, variance_size), intermediate_attribute(intermediate)), inplace);
}

}  // namespace

std::tuple<Value, Value, Value> fused_add_rms_norm_dynamic_per_token_scaled_int8_quant(
    const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon,
    std::optional<std::int64_t> variance_size, std::string_view intermediate, CallSite site) {
  return call_fused_with_token_int8(site, false, x, x_residual, weight, epsilon, variance_size, intermediate);
}

std::tuple<Value, Value, Value> fused_add_rms_norm_dynamic_per_token_scaled_int8_quant(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon,
    std::optional<std::int64_t> variance_size, std::string_view intermediate, CallSite site) {
  return call_fused_with_token_int8(site, true, x, x_residual, weight, epsilon, variance_size, intermediate);
}

}  // namespace weft

OP(fused_add_rms_norm_dynamic_per_token_scaled_int8_quant) {
  using Typed = std::tuple<Value, Value, Value>(const Value&, const Value&, const Value&, Scalar,
                                                std::optional<std::int64_t>, std::string_view, CallSite);
  weft::define_fused_add_rms_norm_quant(op, "fused_add_rms_norm_dynamic_per_token_scaled_int8_quant",
                                        weft::token_int8_tail());
  op.function(static_cast<Typed*>(&weft::fused_add_rms_norm_dynamic_per_token_scaled_int8_quant));
}
