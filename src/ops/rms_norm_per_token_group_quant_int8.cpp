#include "ops/rms_norm_per_token_group_quant_int8.h"

#include "base/error.h"
#include "ops/fused_quant.h"
#include "ops/per_token_group_quant_int8.h"

namespace weft {

std::pair<Value, Value> rms_norm_per_token_group_quant_int8(const Value& x, const Value& weight, Scalar epsilon,
                                                            std::int64_t group_size,
                                                            std::optional<std::int64_t> variance_size, Scalar eps,
                                                            std::string_view rounding, CallSite site) {
  return call(site, "rms_norm_per_token_group_quant_int8", {x, weight},
              joined(int8_group_attributes(group_size, eps, rounding), norm_attributes(epsilon, variance_size)));
}

}  // namespace weft

OP(rms_norm_per_token_group_quant_int8) {
  op.schema(
        "rms_norm_per_token_group_quant_int8(Tensor x, Tensor? weight, float epsilon, int group_size, int? "
        "variance_size=None, float eps=1e-10, str rounding=nearest) -> (Tensor, Tensor)")
      .function(&weft::rms_norm_per_token_group_quant_int8);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    USER_CHECK(x.is_tensor() && x.rank() >= 1, "[rms_norm_per_token_group_quant_int8] x must have rows, but is {}",
               x.text());
    check_int8_groups(request, "rms_norm_per_token_group_quant_int8", x.shape.back());
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Values normalized =
        call("rms_norm", {v[0], v[1]}, {{"epsilon", a.at("epsilon")}, {"variance_size", a.at("variance_size")}});
    const auto [codes, scale] = quantized_int8_groups(normalized[0], a);
    return Values{codes, scale};
  });
  op.sample({{"x", {3, 64}}, {"weight", {64}}}, {{"epsilon", 1e-6}, {"group_size", 32}});
  op.sample({{"x", {5, 576}}, {"weight", {576}, DType::f32}}, {{"epsilon", 1e-5}, {"group_size", 32}});
  op.sample({{"x", {2, 3, 100}}},
            {{"epsilon", 1e-5}, {"group_size", 50}, {"variance_size", 16}, {"rounding", EnumWord{"toward_zero"}}});
  op.tolerance(DType::i8, {});
  op.tolerance(DType::f32, {});
}
