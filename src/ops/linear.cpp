#include "ops/linear.h"

#include <algorithm>

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/block_format.h"

namespace weft {

Value linear(const Value& x, const Value& weight, const Value& bias, CallSite site) {
  return call(site, "linear", {x, weight, bias}, {})[0];
}

}  // namespace weft

OP(linear) {
  op.schema("linear(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor").function(&weft::linear);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Meta& weight = request.operand(1);
    require_floating(x, "linear", "x");
    USER_CHECK(x.rank() >= 1 && weight.rank() == 2 && weight.shape[1] == x.shape.back(),
               "[linear] weight must be [N, {}] to match x: {}, but is {}", x.rank() >= 1 ? x.shape.back().text() : "K",
               x.text(), weight.text());
    if (request.has(2)) {
      const Meta& bias = request.operand(2);
      USER_CHECK(bias.shape == Shape{weight.shape[0]}, "[linear] bias must be [{}] to match weight: {}, but is {}",
                 weight.shape[0].text(), weight.text(), bias.text());
    }
    Shape shape = x.shape;
    shape.back() = weight.shape[0];
    return std::vector<Meta>{Meta::tensor(x.dtype, std::move(shape))};
  });
  op.sample({{"x", {5, 64}}, {"weight", {48, 64}}});
  op.sample({{"x", {1, 64}}, {"weight", {33, 64}}, {"bias", {33}}});
  for (const BlockFormat& format : block_formats()) {
    const std::int64_t block = dtype_info(format.dtype).block_elements, depth = std::max<std::int64_t>(block, 64);
    op.sample({{"x", {7, depth}}, {"weight", {40, depth}, format.dtype}});
    op.sample({{"x", {3, depth + block}}, {"weight", {64, depth + block}, format.dtype}});
  }
  op.sample({{"x", {3, 40}}, {"weight", {64, 40}, DType::bf16}});
  op.sample({{"x", {3, 40}}, {"weight", {64, 40}, DType::f16}});
  // The results sum 96 products of magnitude about 1, in any order. Products of bf16 may take subnormal numbers for
  // zeros.
  op.tolerance(DType::f32, {.absolute = 1e-4, .relative = 1e-4});
}
