#include "ops/slice.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value slice(const Value& x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step, CallSite site) {
  return call(site, "slice", {x}, {{"dim", dim}, {"start", start}, {"end", end}, {"step", step}})[0];
}

}  // namespace weft

OP(slice) {
  op.schema("slice(Tensor x, int dim, int start, int end, int step=1) -> Tensor").function(&weft::slice);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Attributes& a = request.attributes;
    const auto axis = static_cast<std::size_t>(checked_axis(a.at("dim").integer(), x, "slice"));
    const std::int64_t start = a.at("start").integer(), end = a.at("end").integer(), step = a.at("step").integer();
    USER_CHECK(!is_block(x.dtype) && x.packed.empty(), "[slice] x must be a plain tensor, but is {}", x.text());
    const bool inside = !x.shape[axis].is_number() || end <= x.shape[axis].number();
    USER_CHECK(0 <= start && start <= end && step >= 1 && inside,
               "[slice] wanted 0 <= start <= end <= {} and step >= 1, but is {}:{}:{}", x.shape[axis].text(), start,
               end, step);
    Shape shape = x.shape, strides = x.full_strides();
    // A view begins at a byte; packed 4-bit types hold two elements in each.
    const Dim first = strides[axis] * Dim(start);
    USER_CHECK(start % dtype_info(x.dtype).block_elements == 0 ||
                   (first.is_number() && first.number() % dtype_info(x.dtype).block_elements == 0),
               "[slice] start must be even for elements that share a byte, but is {} of {}", start, x.text());
    shape[axis] = end == start ? 0 : (end - start - 1) / step + 1;
    strides[axis] = strides[axis] * Dim(step);
    return std::vector<Meta>{Meta::strided(x.dtype, shape, strides)};
  });
  op.view([](const Meta& x, const Attributes& a) {
    const auto axis = static_cast<std::size_t>(checked_axis(a.at("dim").integer(), x, "slice"));
    return x.full_strides()[axis] * Dim(a.at("start").integer());
  });
  op.exact();
  op.sample({{"x", {4, 12}}}, {{"dim", 1}, {"start", 3}, {"end", 9}});
  op.sample({{"x", {4, 12}}}, {{"dim", -1}, {"start", 1}, {"end", 12}, {"step", 2}});
  op.sample({{"x", {4, 32}, DType::f4e2m1}}, {{"dim", -1}, {"start", 8}, {"end", 24}});
}
