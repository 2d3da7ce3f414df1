#include "ops/grouped_linear_bf16.h"

#include <algorithm>

#include "ir/op.h"
#include "ops/grouped_linear.h"
#include "ops/linear_rules.h"
#include "ops/quantized_linear.h"
#include "tensor/block_format.h"

namespace weft {

Value grouped_linear_bf16(const Value& x, const Value& weight, const Value& experts, const Value& bias, DType dtype,
                          CallSite site) {
  return call(site, "grouped_linear_bf16", {x, weight, experts, bias}, {{"dtype", dtype}})[0];
}

}  // namespace weft

OP(grouped_linear_bf16) {
  op.schema(
        "grouped_linear_bf16(Tensor x, Tensor weight, Tensor experts, Tensor? bias=None, ScalarType dtype=f32) -> "
        "Tensor")
      .function(&weft::grouped_linear_bf16);
  op.checks([](const OpRequest& request) {
    check_rounded_product(request, "grouped_linear_bf16", 3);
    check_experts(request, "grouped_linear_bf16", request.operand(1), 2);
  });
  op.means([](Evaluator&, const Values& v, const Attributes& a) {
    const Value bias = v[3].present() ? cast(v[3], DType::f32) : v[3];
    return Values{
        cast(grouped_linear(cast(v[0], DType::f32), rounded_weight(v[1]), v[2], bias), a.at("dtype").dtype())};
  });
  op.gathers("weight", "experts");
  for (const BlockFormat& format : block_formats()) {
    const std::int64_t block = dtype_info(format.dtype).block_elements, depth = std::max<std::int64_t>(block, 64);
    op.sample({{"x", {5, depth}, DType::bf16},
               {"weight", {3, 40, depth}, format.dtype},
               {"experts", {5}, DType::i32, Fill::indices, 3}});
  }
  op.sample({{"x", {9, 64}, DType::bf16},
             {"weight", {4, 33, 64}, DType::q4_1},
             {"experts", {9}, DType::i64, Fill::indices, 4},
             {"bias", {4, 33}}},
            {{"dtype", DType::bf16}});
  op.sample({{"x", {3, 40}, DType::bf16}, {"weight", {2, 33, 40}}, {"experts", {3}, DType::i32, Fill::indices, 2}});
  tolerate_free_order(op);
}
