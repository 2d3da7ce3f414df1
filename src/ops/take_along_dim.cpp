#include "ops/take_along_dim.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value take_along_dim(const Value& x, const Value& indices, std::int64_t dim, CallSite site) {
  return call(site, "take_along_dim", {x, indices}, {{"dim", dim}})[0];
}

}  // namespace weft

OP(take_along_dim) {
  op.schema("take_along_dim(Tensor x, Tensor indices, int dim=-1) -> Tensor").function(&weft::take_along_dim);
  op.gives([](const OpRequest& request) {
    const Meta &x = request.operand(0), &indices = request.operand(1);
    require_floating(x, "take_along_dim", "x");
    USER_CHECK(indices.dtype == DType::i64 || indices.dtype == DType::i32,
               "[take_along_dim] indices must be i64 or i32, but is {}", indices.text());
    const auto axis =
        static_cast<std::size_t>(checked_axis(request.attributes.at("dim").integer(), x, "take_along_dim"));
    Shape wanted = x.shape;
    if (axis < indices.shape.size()) wanted[axis] = indices.shape[axis];
    USER_CHECK(indices.shape == wanted, "[take_along_dim] indices must have the dims of x: {} except dim {}, but is {}",
               x.text(), axis, indices.text());
    return std::vector<Meta>{Meta::tensor(x.dtype, std::move(wanted))};
  });
  op.exact();
  op.sample({{"x", {5, 16}}, {"indices", {5, 4}, DType::i32, Fill::indices, 16}});
  op.sample({{"x", {2, 3, 10}}, {"indices", {2, 3, 2}, DType::i64, Fill::indices, 10}});
  op.sample({{"x", {2, 7, 4}}, {"indices", {2, 3, 4}, DType::i32, Fill::indices, 7}}, {{"dim", 1}});
}
