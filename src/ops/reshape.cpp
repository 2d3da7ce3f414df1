#include "ops/reshape.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value reshape(const Value& x, Shape shape, CallSite site) { return call(site, "reshape", {x}, {{"shape", shape}})[0]; }

}  // namespace weft

OP(reshape) {
  op.schema("reshape(Tensor x, int[] shape) -> Tensor").function(&weft::reshape);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Shape shape = request.attributes.at("shape").as_shape();
    USER_CHECK(x.is_tensor() && x.packed.empty() && !is_block(x.dtype), "[reshape] x must be a plain tensor, but is {}",
               x.text());
    USER_CHECK(element_count(shape) == element_count(x.shape),
               "[reshape] shape must hold as many elements as x: {}, but is {}", x.text(), shape_text(shape));
    const std::optional<Shape> strides = view_strides(x, shape);
    USER_CHECK(strides.has_value(), "[reshape] x: {} cannot be seen as {} without a copy", x.text(), shape_text(shape));
    return std::vector<Meta>{Meta::strided(x.dtype, shape, *strides)};
  });
  op.view([](const Meta&, const Attributes&) { return Dim(0); });
  op.exact();
  op.sample({{"x", {4, 12}}}, {{"shape", Attribute::shape({4, 3, 4})}});
  op.sample({{"x", {2, 3, 4}}}, {{"shape", Attribute::shape({2, 12})}});
}
