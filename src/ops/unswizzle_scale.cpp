#include "ops/unswizzle_scale.h"

#include "base/error.h"
#include "ir/op.h"

namespace weft {

Value unswizzle_scale(const Value& x, Shape shape, CallSite site) {
  return call(site, "unswizzle_scale", {x}, {{"shape", shape}})[0];
}

}  // namespace weft

OP(unswizzle_scale) {
  op.schema("unswizzle_scale(Tensor x, int[] shape) -> Tensor").function(&weft::unswizzle_scale);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Shape shape = request.attributes.at("shape").as_shape();
    USER_CHECK(shape.size() == 2, "[unswizzle_scale] shape must be that of a matrix, but is {}", shape_text(shape));
    const Shape tiles{1, align(shape[0], 128), align(shape[1], 4)};
    USER_CHECK(x.is_tensor() && x.shape == tiles && x.is_contiguous() && x.packed.empty() && bytes_of(x.dtype, 2) == 2,
               "[unswizzle_scale] x must be one-byte elements {} to hold {}, but is {}", shape_text(tiles),
               shape_text(shape), x.text());
    return std::vector<Meta>{Meta::tensor(x.dtype, shape)};
  });
  op.rows_of(nullptr);
  op.exact();
  op.sample({{"x", {1, 128, 8}, DType::f8e4m3}}, {{"shape", Attribute::shape({5, 6})}});
  op.sample({{"x", {1, 256, 12}, DType::f8e8m0, Fill::positive}}, {{"shape", Attribute::shape({200, 12})}});
}
