#include "ops/grouped_linear.h"

#include <algorithm>

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/linear_rules.h"
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
    const Meta &x = request.operand(0), &weight = request.operand(1);
    require_floating(x, "grouped_linear", "x");
    USER_CHECK(x.rank() == 2, "[grouped_linear] x must be [rows, K], but is {}", x.text());
    USER_CHECK(weight.rank() == 3 && weight.shape[2] == x.shape[1],
               "[grouped_linear] weight must be [E, N, {}] to match x: {}, but is {}", x.shape[1].text(), x.text(),
               weight.text());
    check_experts(request, "grouped_linear", weight, 2);
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
  // The results sum 96 products of magnitude about 1, in any order. Products of bf16 may take subnormal numbers for
  // zeros.
  op.tolerance(DType::f32, {.absolute = 1e-4, .relative = 1e-4});
}
