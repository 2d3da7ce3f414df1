#include "ops/linear_nvfp4.h"

#include "ops/constant.h"
#include "ops/div.h"
#include "ops/linear.h"
#include "ops/microscaling.h"
#include "ops/quantized_linear.h"
#include "ops/scaled_fp4_dequant.h"

namespace weft {
namespace {

void check_side(const OpRequest& request, std::size_t codes, const char* name, const char* scale,
                const char* global_scale) {
  const Meta& x = request.operand(codes);
  check_dtype(x, DType::f4e2m1, "linear_nvfp4", name);
  check_blocks(x, "linear_nvfp4", kNvfp4Group);
  check_dtype(request.operand(codes + 1), DType::f8e4m3, "linear_nvfp4", scale);
  check_block_scales(request.operand(codes + 1), x.shape, kNvfp4Group,
                     request.attributes.at("swizzled_scales").boolean(), "linear_nvfp4", scale);
  check_one_scale(request.operand(codes + 2), "linear_nvfp4", global_scale);
}

}  // namespace

Value linear_nvfp4(const Value& x, const Value& scale, const Value& global_scale, const Value& weight,
                   const Value& weight_scale, const Value& weight_global_scale, const Value& bias, bool swizzled_scales,
                   std::string_view intermediate, DType dtype, CallSite site) {
  return call(site, "linear_nvfp4", {x, scale, global_scale, weight, weight_scale, weight_global_scale, bias},
              {{"swizzled_scales", swizzled_scales}, {"intermediate", WordView{intermediate}}, {"dtype", dtype}})[0];
}

}  // namespace weft

OP(linear_nvfp4) {
  op.schema(
        "linear_nvfp4(Tensor x, Tensor scale, Tensor global_scale, Tensor weight, Tensor weight_scale, Tensor "
        "weight_global_scale, Tensor? bias=None, bool swizzled_scales=True, str intermediate=f32, ScalarType "
        "dtype=bf16) -> Tensor")
      .function(&weft::linear_nvfp4);
  op.checks([](const OpRequest& request) {
    check_quantized_linear(request, "linear_nvfp4", 3, 6);
    check_side(request, 0, "x", "scale", "global_scale");
    check_side(request, 3, "weight", "weight_scale", "weight_global_scale");
    const std::string& intermediate = request.attributes.at("intermediate").word();
    USER_CHECK(intermediate == "f32" || intermediate == "output_dtype",
               "[linear_nvfp4] intermediate must be f32 or output_dtype, but is {}", intermediate);
  });
  op.means([](Evaluator& home, const Values& v, const Attributes& a) {
    const DType dtype = a.at("dtype").dtype();
    const bool swizzled = a.at("swizzled_scales").boolean(), rounds = a.at("intermediate").word() == "output_dtype";
    const DType inside = rounds ? dtype : DType::f32;
    const Value one = constant(home, {1.0});
    const Value x = scaled_fp4_dequant(v[0], v[1], rounds ? v[2] : one, swizzled, rounds, inside);
    const Value weight = scaled_fp4_dequant(v[3], v[4], rounds ? v[5] : one, swizzled, false, inside);
    const Value product = cast(linear(x, weight), DType::f32);
    if (rounds) return Values{finished_linear(product, v[6], dtype)};
    const Value factor = div(reshape(v[5], {1}), reshape(v[2], {1}));
    return Values{finished_linear(mul(product, factor), v[6], dtype)};
  });
  const auto add_sample = [&](std::int64_t rows, SampleTensor scale, SampleTensor weight_scale, bool has_bias,
                              NamedAttributes attributes) {
    std::vector<SampleTensor> tensors = {{"x", {rows, 64}, DType::f4e2m1},
                                         std::move(scale),
                                         {"global_scale", {1}, DType::f32, Fill::positive},
                                         {"weight", {33, 64}, DType::f4e2m1},
                                         std::move(weight_scale),
                                         {"weight_global_scale", {1}, DType::f32, Fill::codes}};
    if (has_bias) tensors.push_back({"bias", {33}, DType::f32});
    op.sample(std::move(tensors), std::move(attributes));
  };
  add_sample(5, {"scale", {5, 4}, DType::f8e4m3, Fill::positive},
             {"weight_scale", {33, 4}, DType::f8e4m3, Fill::positive}, true,
             {{"swizzled_scales", false}, {"dtype", DType::f32}});
  add_sample(5, {"scale", {5, 4}, DType::f8e4m3, Fill::positive},
             {"weight_scale", {33, 4}, DType::f8e4m3, Fill::positive}, true,
             {{"swizzled_scales", false}, {"intermediate", EnumWord{"output_dtype"}}});
  add_sample(1, {"scale", {1, 128, 4}, DType::f8e4m3, Fill::positive},
             {"weight_scale", {1, 128, 4}, DType::f8e4m3, Fill::positive}, false,
             {{"intermediate", EnumWord{"output_dtype"}}});
  tolerate_free_order(op);
}
