#include "ops/concat.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value concat(const Values& tensors, std::int64_t dim, CallSite site) {
  return call(site, "concat", tensors, {{"dim", dim}})[0];
}

}  // namespace weft

OP(concat) {
  op.schema("concat(Tensor[] tensors, int dim) -> Tensor").function(&weft::concat);
  op.gives([](const OpRequest& request) {
    USER_CHECK(!request.operands.empty(), "[concat] tensors must hold at least one tensor");
    const Meta& first = request.operand(0);
    const auto axis = static_cast<std::size_t>(checked_axis(request.attributes.at("dim").integer(), first, "concat"));
    Shape shape = first.shape;
    for (std::size_t i = 1; i < request.operands.size(); ++i) {
      const Meta& next = request.operand(i);
      Shape expected = next.shape;
      USER_CHECK(next.is_tensor() && next.dtype == first.dtype && next.rank() == first.rank(),
                 "[concat] tensors must be alike: {}, but one is {}", first.text(), next.text());
      shape[axis] = shape[axis] + next.shape[axis];
      expected[axis] = first.shape[axis];
      USER_CHECK(expected == first.shape, "[concat] tensors must agree outside dim {}: {}, but one is {}", axis,
                 first.text(), next.text());
    }
    return std::vector<Meta>{Meta::tensor(first.dtype, std::move(shape))};
  });
  op.exact();
  op.sample({{"tensors", {3, 5}}, {"tensors", {3, 2}}}, {{"dim", 1}});
  op.sample({{"tensors", {2, 3, 4}}, {"tensors", {2, 3, 4}}, {"tensors", {2, 3, 4}}}, {{"dim", -1}});
}
