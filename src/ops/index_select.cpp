#include "ops/index_select.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

Value index_select(const Value& x, const Value& index, std::int64_t dim, CallSite site) {
  return call(site, "index_select", {x, index}, {{"dim", dim}})[0];
}

}  // namespace weft

OP(index_select) {
  op.schema("index_select(Tensor x, Tensor index, int dim=0) -> Tensor").function(&weft::index_select);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Meta& index = request.operand(1);
    const int axis = checked_axis(request.attributes.at("dim").integer(), x, "index_select");
    USER_CHECK(index.rank() == 1 && (index.dtype == DType::i64 || index.dtype == DType::i32),
               "[index_select] index must be i64[n] or i32[n], but is {}", index.text());
    USER_CHECK(axis == 0 || !is_block(x.dtype), "[index_select] of {} only rows can be taken", x.text());
    Shape shape = x.shape;
    shape[static_cast<std::size_t>(axis)] = index.shape[0];
    return std::vector<Meta>{Meta::tensor(x.dtype, std::move(shape))};
  });
  op.rows_of("index");
  op.gathers("x", "index").exact();
  op.sample({{"x", {9, 6}}, {"index", {4}, DType::i64, Fill::indices, 9}});
  op.sample({{"x", {9, 64}, DType::q8_0}, {"index", {3}, DType::i64, Fill::indices, 9}});
  op.sample({{"x", {9, 256}, DType::q6_k}, {"index", {3}, DType::i64, Fill::indices, 9}});
  op.sample({{"x", {3, 5}}, {"index", {2}, DType::i32, Fill::indices, 5}}, {{"dim", 1}});
}
