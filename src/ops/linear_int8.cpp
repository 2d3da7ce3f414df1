#include "ops/linear_int8.h"

#include <algorithm>

#include "ir/op.h"
#include "ops/linear_rules.h"
#include "tensor/block_format.h"

namespace weft {

Value linear_int8(const Value& x, const Value& scale, const Value& weight, DType dtype, CallSite site) {
  return call(site, "linear_int8", {x, scale, weight}, {{"dtype", dtype}})[0];
}

}  // namespace weft

OP(linear_int8) {
  op.schema("linear_int8(Tensor x, Tensor scale, Tensor weight, ScalarType dtype=f32) -> Tensor")
      .function(&weft::linear_int8);
  op.gives([](const OpRequest& request) {
    check_int8_product(request, "linear_int8", 2);
    return std::vector<Meta>{Meta::tensor(request.attributes.at("dtype").dtype(),
                                          {request.operand(0).shape[0], request.operand(2).shape[0]})};
  });
  for (const BlockFormat& format : block_formats()) {
    if (!has_integer_codes(format)) continue;
    const DType weight = format.dtype;
    const std::int64_t block = dtype_info(weight).block_elements, depth = std::max<std::int64_t>(block, 64);
    op.sample({{"x", {5, depth + block}, DType::i8, Fill::codes},
               {"scale", {5, (depth + block) / 32}, DType::f32, Fill::codes},
               {"weight", {70, depth + block}, weight}});
    op.sample({{"x", {1, depth}, DType::i8, Fill::codes},
               {"scale", {1, depth / 32}, DType::f32, Fill::codes},
               {"weight", {32, depth}, weight}},
              {{"dtype", DType::bf16}});
  }
  op.tolerance(DType::f32, {});
  op.tolerance(DType::bf16, {});
}
