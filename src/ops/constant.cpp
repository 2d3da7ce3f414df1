#include "ops/constant.h"

#include "base/error.h"
#include "ir/op.h"

namespace weft {

Value constant(Evaluator& evaluator, std::vector<double> values, std::optional<Shape> shape, DType dtype,
               CallSite site) {
  AttributeList list(values.begin(), values.end());
  return call(site, "constant", {}, {{"values", Attribute(std::move(list))}, {"shape", shape}, {"dtype", dtype}}, false,
              &evaluator)[0];
}

}  // namespace weft

OP(constant) {
  op.schema("constant(float[] values, int[]? shape=None, ScalarType dtype=f32) -> Tensor").function(&weft::constant);
  op.gives([](const OpRequest& request) {
    constexpr std::size_t kMaxElements = 64;
    const auto count = request.attributes.at("values").list().size();
    const Attribute& shape = request.attributes.at("shape");
    USER_CHECK(count <= kMaxElements, "[constant] values must be at most {} elements, but are {}", kMaxElements, count);
    const Shape dims = shape.is_none() ? Shape{static_cast<std::int64_t>(count)} : shape.as_shape();
    USER_CHECK(element_count(dims) == Dim(static_cast<std::int64_t>(count)),
               "[constant] shape {} must hold {} elements", shape_text(dims), count);
    const DType dtype = request.attributes.at("dtype").dtype();
    USER_CHECK(!is_block(dtype), "[constant] dtype must be a plain type, but is {}", dtype_text(dtype));
    return std::vector<Meta>{Meta::tensor(dtype, dims)};
  });
  op.exact();
  op.sample({}, {{"values", AttributeList{1.0, -2.5, 3.0}}});
  op.sample({}, {{"values", AttributeList{1.0, 2.0}}, {"shape", Attribute::shape({2, 1})}, {"dtype", DType::bf16}});
}
