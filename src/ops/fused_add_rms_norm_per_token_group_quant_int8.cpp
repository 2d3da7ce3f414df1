#include "ops/fused_add_rms_norm_per_token_group_quant_int8.h"

#include "base/error.h"
#include "ops/fused_quant.h"
#include "ops/per_token_group_quant_int8.h"

namespace weft {
namespace {

constexpr const char* kFusedGroupInt8 = "fused_add_rms_norm_per_token_group_quant_int8";

std::tuple<Value, Value, Value> call_fused_with_group_int8(CallSite site, bool inplace, const Value& x,
                                                           const Value& x_residual, const Value& weight, Scalar epsilon,
                                                           std::int64_t group_size,
                                                           std::optional<std::int64_t> variance_size,
                                                           std::string_view intermediate, Scalar eps,
                                                           std::string_view rounding) {
  return call(site, kFusedGroupInt8, {x, x_residual, weight},
              joined(int8_group_attributes(group_size, eps, rounding), norm_attributes(epsilon, variance_size),
                     intermediate_attribute(intermediate)),
              inplace);
}

}  // namespace

std::tuple<Value, Value, Value> fused_add_rms_norm_per_token_group_quant_int8(
    const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon, std::int64_t group_size,
    std::optional<std::int64_t> variance_size, std::string_view intermediate, Scalar eps, std::string_view rounding,
    CallSite site) {
  return call_fused_with_group_int8(site, false, x, x_residual, weight, epsilon, group_size, variance_size,
                                    intermediate, eps, rounding);
}

std::tuple<Value, Value, Value> fused_add_rms_norm_per_token_group_quant_int8(
    MaybeInplace, const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon, std::int64_t group_size,
    std::optional<std::int64_t> variance_size, std::string_view intermediate, Scalar eps, std::string_view rounding,
    CallSite site) {
  return call_fused_with_group_int8(site, true, x, x_residual, weight, epsilon, group_size, variance_size, intermediate,
                                    eps, rounding);
}

}  // namespace weft

OP(fused_add_rms_norm_per_token_group_quant_int8) {
  using Typed = std::tuple<Value, Value, Value>(const Value&, const Value&, const Value&, Scalar, std::int64_t,
                                                std::optional<std::int64_t>, std::string_view, Scalar, std::string_view,
                                                CallSite);
  op.schema(
      "fused_add_rms_norm_per_token_group_quant_int8(Tensor x, Tensor x_residual, Tensor? weight, float epsilon, int "
      "group_size, int? variance_size=None, str intermediate=f32, float eps=1e-10, str rounding=nearest) -> (Tensor, "
      "Tensor, Tensor)");
  op.function(static_cast<Typed*>(&weft::fused_add_rms_norm_per_token_group_quant_int8));
  op.allow_inplace().donates("x_residual", 2);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    USER_CHECK(x.is_tensor() && x.rank() >= 1, "[{}] x must have rows, but is {}", kFusedGroupInt8, x.text());
    check_int8_groups(request, kFusedGroupInt8, x.shape.back());
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Values normalized = call("fused_add_rms_norm", {v[0], v[1], v[2]},
                                   {{"epsilon", a.at("epsilon")},
                                    {"variance_size", a.at("variance_size")},
                                    {"intermediate", a.at("intermediate")}});
    const auto [codes, scale] = quantized_int8_groups(normalized[0], a);
    return Values{codes, scale, normalized[1]};
  });
  op.sample({{"x", {3, 64}}, {"x_residual", {3, 64}}, {"weight", {64}}}, {{"epsilon", 1e-6}, {"group_size", 32}});
  op.sample({{"x", {5, 576}}, {"x_residual", {5, 576}}, {"weight", {576}, DType::f32}},
            {{"epsilon", 1e-5}, {"group_size", 32}});
  op.sample({{"x", {2, 100}}, {"x_residual", {2, 100}}}, {{"epsilon", 1e-5},
                                                          {"group_size", 50},
                                                          {"intermediate", EnumWord{"input_dtype"}},
                                                          {"rounding", EnumWord{"toward_zero"}}});
  op.tolerance(DType::i8, {});
  op.tolerance(DType::f32, {});
}
