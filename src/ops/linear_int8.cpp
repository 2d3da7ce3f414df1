#include "ops/linear_int8.h"

#include <algorithm>

#include "base/error.h"
#include "ir/op.h"
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
    constexpr std::int64_t kGroup = 32;
    const Meta& x = request.operand(0);
    const Meta& scale = request.operand(1);
    const Meta& weight = request.operand(2);
    USER_CHECK(x.is_tensor() && x.dtype == DType::i8 && x.rank() == 2 && x.shape[1].is_number(),
               "[linear_int8] x must be i8[rows, K], but is {}", x.text());
    const Shape groups{x.shape[0], x.shape[1].number() / kGroup};
    USER_CHECK(scale.dtype == DType::f32 && scale.shape == groups,
               "[linear_int8] scale must be f32{} to match x: {}, but is {}", shape_text(groups), x.text(),
               scale.text());
    USER_CHECK(has_integer_codes(weight.dtype) && weight.rank() == 2 && weight.shape[1] == x.shape[1],
               "[linear_int8] weight must be [N, {}] of a block type with integer codes to match x: {}, but is {}",
               x.shape[1].text(), x.text(), weight.text());
    return std::vector<Meta>{Meta::tensor(request.attributes.at("dtype").dtype(), {x.shape[0], weight.shape[0]})};
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
