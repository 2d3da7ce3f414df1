#include "ops/where_at_most.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {
namespace {

void check_spreads_to_compared(const Meta& x, const Meta& value, const char* parameter) {
  require_floating(value, "where_at_most", parameter);
  bool fits = value.rank() <= x.rank();
  for (std::size_t i = 1; fits && i <= value.rank(); ++i) {
    const Dim& dim = value.shape[value.rank() - i];
    fits = dim == Dim(1) || dim == x.shape[x.rank() - i];
  }
  USER_CHECK(fits, "[where_at_most] {} must match x: {} or have 1 in its place, but is {}", parameter, x.text(),
             value.text());
}

}  // namespace

Value where_at_most(const Value& x, const Value& then, const Value& otherwise, Scalar bound, CallSite site) {
  return call(site, "where_at_most", {x, then, otherwise}, {{"bound", bound.value}})[0];
}

}  // namespace weft

OP(where_at_most) {
  op.schema("where_at_most(Tensor x, Tensor then, Tensor otherwise, float bound) -> Tensor")
      .function(&weft::where_at_most);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Meta& then = request.operand(1);
    const Meta& otherwise = request.operand(2);
    require_floating(x, "where_at_most", "x");
    check_spreads_to_compared(x, then, "then");
    check_spreads_to_compared(x, otherwise, "otherwise");
    USER_CHECK(then.dtype == otherwise.dtype, "[where_at_most] otherwise must be of dtype {} as then: {}, but is {}",
               dtype_text(then.dtype), then.text(), otherwise.text());
    return std::vector<Meta>{Meta::tensor(then.dtype, x.shape)};
  });
  op.exact();
  op.sample({{"x", {5, 33}}, {"then", {5, 33}}, {"otherwise", {5, 33}}}, {{"bound", 0.0}});
  op.sample({{"x", {3, 4, 8}}, {"then", {8}}, {"otherwise", {4, 1}}}, {{"bound", 0.25}});
  op.sample({{"x", {2, 7}}, {"then", {1}, DType::f32}, {"otherwise", {2, 7}, DType::f32}}, {{"bound", -0.5}});
}
