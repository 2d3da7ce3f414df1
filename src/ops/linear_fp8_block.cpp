#include "ops/linear_fp8_block.h"

#include "ops/fp8_quant.h"
#include "ops/linear.h"
#include "ops/quantized_linear.h"
#include "ops/scaled_dequantize.h"

namespace weft {
namespace {

void check_scale(const Meta& scale, const Shape& wanted, const char* parameter) {
  USER_CHECK(scale.is_tensor() && scale.dtype == DType::f32 && scale.shape == wanted,
             "[linear_fp8_block] {} must be f32{}, but is {}", parameter, shape_text(wanted), scale.text());
}

}  // namespace

Value linear_fp8_block(const Value& x, const Value& scale, const Value& weight, const Value& weight_scale,
                       const Value& bias, Shape block, DType dtype, CallSite site) {
  return call(site, "linear_fp8_block", {x, scale, weight, weight_scale, bias},
              {{"block", block}, {"dtype", dtype}})[0];
}

}  // namespace weft

OP(linear_fp8_block) {
  op.schema(
        "linear_fp8_block(Tensor x, Tensor scale, Tensor weight, Tensor weight_scale, Tensor? bias, int[] block, "
        "ScalarType dtype=f32) -> Tensor")
      .function(&weft::linear_fp8_block);
  op.checks([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Meta& weight = request.operand(2);
    check_quantized_linear(request, "linear_fp8_block", 2, 4);
    check_fp8_dtype(x.dtype, "linear_fp8_block", "x");
    const Shape block = request.attributes.at("block").as_shape();
    USER_CHECK(block.size() == 2 && block[0].is_number() && block[1].is_number() && block[0].number() > 0 &&
                   block[1].number() > 0,
               "[linear_fp8_block] block must be two positive numbers, but is {}", shape_text(block));
    const Dim groups = ceildiv(x.shape[1], block[1].number());
    check_scale(request.operand(1), {x.shape[0], groups}, "scale");
    check_scale(request.operand(3), {ceildiv(weight.shape[0], block[0].number()), groups}, "weight_scale");
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Shape block = a.at("block").as_shape();
    const Value x = scaled_dequantize(v[0], v[1], {1, block[1]});
    return Values{finished_linear(linear(x, scaled_dequantize(v[2], v[3], block)), v[4], a.at("dtype").dtype())};
  });
  op.sample({{"x", {5, 96}, DType::f8e4m3},
             {"scale", {5, 3}, DType::f32, Fill::codes},
             {"weight", {70, 96}, DType::f8e4m3},
             {"weight_scale", {3, 3}, DType::f32, Fill::codes},
             {"bias", {70}, DType::f32}},
            {{"block", Attribute::shape({32, 32})}});
  op.sample({{"x", {1, 100}, DType::f8e4m3},
             {"scale", {1, 2}, DType::f32, Fill::codes},
             {"weight", {64, 100}, DType::f8e4m3},
             {"weight_scale", {1, 2}, DType::f32, Fill::codes}},
            {{"block", Attribute::shape({64, 64})}, {"dtype", DType::bf16}});
  op.sample({{"x", {3, 256}, DType::f8e4m3fnuz},
             {"scale", {3, 2}, DType::f32, Fill::codes},
             {"weight", {200, 256}, DType::f8e4m3fnuz},
             {"weight_scale", {2, 2}, DType::f32, Fill::codes}},
            {{"block", Attribute::shape({128, 128})}});
  op.sample({{"x", {6, 272}, DType::f8e4m3},
             {"scale", {6, 3}, DType::f32, Fill::codes},
             {"weight", {160, 272}, DType::f8e4m3},
             {"weight_scale", {2, 3}, DType::f32, Fill::codes}},
            {{"block", Attribute::shape({128, 128})}, {"dtype", DType::bf16}});
  tolerate_free_order(op);
}
