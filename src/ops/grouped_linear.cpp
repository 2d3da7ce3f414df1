#include "ops/grouped_linear.h"

#include <algorithm>

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "tensor/block_format.h"

namespace weft {

Value grouped_linear(const Value& x, const Value& weight, const Value& experts, const Value& bias, CallSite site) {
  return call(site, "grouped_linear", {x, weight, experts, bias}, {})[0];
}

}  // namespace weft

OP(grouped_linear) {
  op.schema("grouped_linear(Tensor x, Tensor weight, Tensor experts, Tensor? bias=None) -> Tensor")
      .function(&weft::grouped_linear);
  op.gives([](const OpRequest& request) {
    const Meta &x = request.operand(0), &weight = request.operand(1), &experts = request.operand(2);
    require_floating(x, "grouped_linear", "x");
    USER_CHECK(x.rank() == 2, "[grouped_linear] x must be [rows, K], but is {}", x.text());
    USER_CHECK(weight.rank() == 3 && weight.shape[2] == x.shape[1],
               "[grouped_linear] weight must be [E, N, {}] to match x: {}, but is {}", x.shape[1].text(), x.text(),
               weight.text());
    USER_CHECK((experts.dtype == DType::i64 || experts.dtype == DType::i32) && experts.shape == Shape{x.shape[0]},
               "[grouped_linear] experts must be i32[{}] or i64[{}] to match x: {}, but is {}", x.shape[0].text(),
               x.shape[0].text(), x.text(), experts.text());
    if (request.has(3)) {
      const Meta& bias = request.operand(3);
      USER_CHECK(bias.shape == (Shape{weight.shape[0], weight.shape[1]}),
                 "[grouped_linear] bias must be [{}, {}] to match weight: {}, but is {}", weight.shape[0].text(),
                 weight.shape[1].text(), weight.text(), bias.text());
    }
    return std::vector<Meta>{Meta::tensor(x.dtype, {x.shape[0], weight.shape[1]})};
  });
  op.gathers("weight", "experts");
  op.sample({{"x", {5, 64}}, {"weight", {7, 48, 64}}, {"experts", {5}, DType::i32, Fill::indices, 7}});
  op.sample({{"x", {9, 40}},
             {"weight", {3, 33, 40}, DType::bf16},
             {"experts", {9}, DType::i64, Fill::indices, 3},
             {"bias", {3, 33}}});
  for (const BlockFormat& format : block_formats()) {
    const std::int64_t block = dtype_info(format.dtype).block_elements, depth = std::max<std::int64_t>(block, 64);
    op.sample(
        {{"x", {3, depth}}, {"weight", {4, 40, depth}, format.dtype}, {"experts", {3}, DType::i32, Fill::indices, 4}});
  }
  op.sample({{"x", {3, 40}}, {"weight", {2, 64, 40}, DType::f16}, {"experts", {3}, DType::i32, Fill::indices, 2}});
  // The results sum 96 products of magnitude about 1, in any order.
  op.tolerance(DType::f32, {.absolute = 1e-4, .relative = 1e-4});
}
