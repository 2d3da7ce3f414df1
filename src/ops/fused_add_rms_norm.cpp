#include "ops/fused_add_rms_norm.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/add.h"
#include "ops/cast.h"
#include "ops/rms_norm.h"

namespace weft {
namespace {

std::pair<Value, Value> call_fused_add_rms_norm(CallSite site, bool inplace, const Value& x, const Value& x_residual,
                                                const Value& weight, Scalar epsilon,
                                                std::optional<std::int64_t> variance_size,
                                                std::string_view intermediate) {
  return call(site, "fused_add_rms_norm", {x, x_residual, weight},
              {{"epsilon", epsilon.value}, {"variance_size", variance_size}, {"intermediate", WordView{intermediate}}},
              inplace);
}

}  // namespace

std::pair<Value, Value> fused_add_rms_norm(const Value& x, const Value& x_residual, const Value& weight, Scalar epsilon,
                                           std::optional<std::int64_t> variance_size, std::string_view intermediate,
                                           CallSite site) {
  return call_fused_add_rms_norm(site, false, x, x_residual, weight, epsilon, variance_size, intermediate);
}

std::pair<Value, Value> fused_add_rms_norm(MaybeInplace, const Value& x, const Value& x_residual, const Value& weight,
                                           Scalar epsilon, std::optional<std::int64_t> variance_size,
                                           std::string_view intermediate, CallSite site) {
  return call_fused_add_rms_norm(site, true, x, x_residual, weight, epsilon, variance_size, intermediate);
}

}  // namespace weft

OP(fused_add_rms_norm) {
  using Typed = std::pair<Value, Value>(const Value&, const Value&, const Value&, Scalar, std::optional<std::int64_t>,
                                        std::string_view, CallSite);
  op.schema(
      "fused_add_rms_norm(Tensor x, Tensor x_residual, Tensor? weight, float epsilon, int? variance_size=None, "
      "str intermediate=f32) -> (Tensor, Tensor)");
  op.function(static_cast<Typed*>(&weft::fused_add_rms_norm));
  op.allow_inplace().donates("x", 0).donates("x_residual", 1);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Meta& residual = request.operand(1);
    require_floating(x, "fused_add_rms_norm", "x");
    USER_CHECK(residual.is_tensor() && residual.dtype == x.dtype && residual.shape == x.shape,
               "[fused_add_rms_norm] x_residual must match x: {}, but is {}", x.text(), residual.text());
    const std::string& intermediate = request.attributes.at("intermediate").word();
    USER_CHECK(intermediate == "f32" || intermediate == "input_dtype",
               "[fused_add_rms_norm] intermediate must be f32 or input_dtype, but is {}", intermediate);
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const DType dtype = v[0].dtype();
    const bool stays_in_f32 = a.at("intermediate").word() == "f32";
    // add(x, x_residual) of f64 is computed in f64.
    const DType sum_dtype = dtype == DType::f64 && !stays_in_f32 ? DType::f64 : DType::f32;
    const Value sum = add(cast(v[0], sum_dtype), cast(v[1], sum_dtype));
    const Value residual = cast(sum, dtype);
    const Value rows = stays_in_f32 ? sum : cast(residual, DType::f32);
    return Values{normalized_rows(rows, v[2], Scalar(a.at("epsilon")), a.at("variance_size"), dtype), residual};
  });
  op.sample({{"x", {3, 64}}, {"x_residual", {3, 64}}, {"weight", {64}}}, {{"epsilon", 1e-6}});
  op.sample({{"x", {5, 576}}, {"x_residual", {5, 576}}, {"weight", {576}, DType::f32}}, {{"epsilon", 1e-5}});
  op.sample({{"x", {2, 100}}, {"x_residual", {2, 100}}},
            {{"epsilon", 1e-5}, {"intermediate", EnumWord{"input_dtype"}}});
  op.tolerance(DType::f16, {.absolute = 1e-2, .relative = 2e-3});
}
