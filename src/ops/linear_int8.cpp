#include "ops/linear_int8.h"

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
    USER_CHECK(is_block(weight.dtype) && block_format(weight.dtype).group == kGroup && weight.rank() == 2 &&
                   weight.shape[1] == x.shape[1],
               "[linear_int8] weight must be [N, {}] of a block type with groups of {} to match x: {}, but is {}",
               x.shape[1].text(), kGroup, x.text(), weight.text());
    return std::vector<Meta>{Meta::tensor(request.attributes.at("dtype").dtype(), {x.shape[0], weight.shape[0]})};
  });
  for (const BlockFormat& format : block_formats()) {
    if (format.group != 32) continue;
    const DType weight = format.dtype;
    op.sample({{"x", {5, 96}, DType::i8, Fill::codes},
               {"scale", {5, 3}, DType::f32, Fill::codes},
               {"weight", {70, 96}, weight}});
    op.sample({{"x", {1, 64}, DType::i8, Fill::codes},
               {"scale", {1, 2}, DType::f32, Fill::codes},
               {"weight", {32, 64}, weight}},
              {{"dtype", DType::bf16}});
  }
  op.tolerance(DType::f32, {});
  op.tolerance(DType::bf16, {});
}
