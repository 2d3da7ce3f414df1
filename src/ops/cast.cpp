#include "ops/cast.h"

#include "base/error.h"
#include "ir/op.h"
#include "tensor/arithmetic_cost.h"
#include "tensor/block_format.h"

namespace weft {

Value cast(const Value& x, DType dtype, CallSite site) { return call(site, "cast", {x}, {{"dtype", dtype}})[0]; }

}  // namespace weft

OP(cast) {
  op.schema("cast(Tensor x, ScalarType dtype) -> Tensor").function(&weft::cast);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const DType dtype = request.attributes.at("dtype").dtype();
    USER_CHECK(x.is_tensor(), "[cast] x must be a tensor, but is {}", x.text());
    USER_CHECK(!is_block(dtype) || dtype == x.dtype, "[cast] nothing is quantized to {} here; x is {}",
               dtype_text(dtype), x.text());
    return std::vector<Meta>{Meta::tensor(dtype, x.shape)};
  });
  op.costs(kConversionCost);
  op.exact();
  op.sample({{"x", {5, 33}}}, {{"dtype", DType::f32}});
  op.sample({{"x", {5, 33}}}, {{"dtype", DType::bf16}});
  op.sample({{"x", {5, 33}}}, {{"dtype", DType::f16}});
  op.sample({{"x", {2, 16}}}, {{"dtype", DType::i8}});
  for (const BlockFormat& format : block_formats()) {
    const std::int64_t width = 2 * dtype_info(format.dtype).block_elements;
    op.sample({{"x", {3, width}, format.dtype}}, {{"dtype", DType::f32}});
  }
}
