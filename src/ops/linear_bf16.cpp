#include "ops/linear_bf16.h"

#include <algorithm>

#include "ir/op.h"
#include "ops/linear.h"
#include "ops/linear_rules.h"
#include "ops/quantized_linear.h"
#include "tensor/block_format.h"

namespace weft {

Value linear_bf16(const Value& x, const Value& weight, const Value& bias, DType dtype, CallSite site) {
  return call(site, "linear_bf16", {x, weight, bias}, {{"dtype", dtype}})[0];
}

}  // namespace weft

OP(linear_bf16) {
  op.schema("linear_bf16(Tensor x, Tensor weight, Tensor? bias=None, ScalarType dtype=f32) -> Tensor")
      .function(&weft::linear_bf16);
  op.checks([](const OpRequest& request) {
    check_rounded_product(request, "linear_bf16", 2);
    if (!request.has(2)) return;
    const Meta &weight = request.operand(1), &bias = request.operand(2);
    USER_CHECK(bias.shape == Shape{weight.shape[0]}, "[linear_bf16] bias must be [{}] to match weight: {}, but is {}",
               weight.shape[0].text(), weight.text(), bias.text());
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Value product = linear(cast(v[0], DType::f32), rounded_weight(v[1]));
    return Values{finished_linear(product, v[2], a.at("dtype").dtype())};
  });
  for (const BlockFormat& format : block_formats()) {
    const std::int64_t block = dtype_info(format.dtype).block_elements, depth = std::max<std::int64_t>(block, 64);
    op.sample({{"x", {7, depth}, DType::bf16}, {"weight", {40, depth}, format.dtype}});
    op.sample({{"x", {1, depth + block}, DType::bf16}, {"weight", {64, depth + block}, format.dtype}, {"bias", {64}}},
              {{"dtype", DType::bf16}});
  }
  op.sample({{"x", {3, 40}, DType::bf16}, {"weight", {33, 40}, DType::bf16}});
  op.sample({{"x", {3, 40}, DType::bf16}, {"weight", {33, 40}}});
  tolerate_free_order(op);
}
