#include "ops/grouped_linear_int8.h"

#include <algorithm>

#include "ir/op.h"
#include "ops/linear_rules.h"
#include "tensor/block_format.h"

namespace weft {

Value grouped_linear_int8(const Value& x, const Value& scale, const Value& weight, const Value& experts,
                          const Value& bias, DType dtype, CallSite site) {
  return call(site, "grouped_linear_int8", {x, scale, weight, experts, bias}, {{"dtype", dtype}})[0];
}

}  // namespace weft

OP(grouped_linear_int8) {
  op.schema(
        "grouped_linear_int8(Tensor x, Tensor scale, Tensor weight, Tensor experts, Tensor? bias=None, "
        "ScalarType dtype=f32) -> Tensor")
      .function(&weft::grouped_linear_int8);
  op.gives([](const OpRequest& request) {
    check_int8_product(request, "grouped_linear_int8", 3);
    const Meta& weight = request.operand(2);
    check_experts(request, "grouped_linear_int8", weight, 3);
    return std::vector<Meta>{
        Meta::tensor(request.attributes.at("dtype").dtype(), {request.operand(0).shape[0], weight.shape[1]})};
  });
  op.gathers("weight", "experts");
  for (const BlockFormat& format : block_formats()) {
    if (!has_integer_codes(format)) continue;
    const std::int64_t block = dtype_info(format.dtype).block_elements, depth = std::max<std::int64_t>(block, 64);
    op.sample({{"x", {5, depth}, DType::i8, Fill::codes},
               {"scale", {5, depth / 32}, DType::f32, Fill::codes},
               {"weight", {3, 40, depth}, format.dtype},
               {"experts", {5}, DType::i32, Fill::indices, 3}});
  }
  op.sample({{"x", {9, 64}, DType::i8, Fill::codes},
             {"scale", {9, 2}, DType::f32, Fill::codes},
             {"weight", {4, 33, 64}, DType::q4_1},
             {"experts", {9}, DType::i64, Fill::indices, 4},
             {"bias", {4, 33}}},
            {{"dtype", DType::bf16}});
  op.tolerance(DType::f32, {});
  op.tolerance(DType::bf16, {});
}
