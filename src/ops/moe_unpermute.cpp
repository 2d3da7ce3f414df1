#include "ops/moe_unpermute.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"
#include "ops/cast.h"
#include "ops/index_select.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/sum.h"

namespace weft {

Value moe_unpermute(const Value& x, const Value& topk_weights, const Value& positions, CallSite site) {
  return call(site, "moe_unpermute", {x, topk_weights, positions}, {})[0];
}

}  // namespace weft

OP(moe_unpermute) {
  op.schema("moe_unpermute(Tensor x, Tensor topk_weights, Tensor positions) -> Tensor").function(&weft::moe_unpermute);
  op.checks([](const OpRequest& request) {
    const Meta &x = request.operand(0), &weights = request.operand(1), &positions = request.operand(2);
    require_floating(x, "moe_unpermute", "x");
    USER_CHECK(x.rank() == 2, "[moe_unpermute] x must be [rows, d], but is {}", x.text());
    USER_CHECK(positions.is_tensor() && positions.rank() == 2 && positions.shape[1].is_number() &&
                   (positions.dtype == DType::i64 || positions.dtype == DType::i32),
               "[moe_unpermute] positions must be i32[rows, k] or i64[rows, k], but is {}", positions.text());
    USER_CHECK(weights.dtype == DType::f32 && weights.shape == positions.shape,
               "[moe_unpermute] topk_weights must be f32{} to match positions, but is {}", shape_text(positions.shape),
               weights.text());
  });
  op.means([](Evaluator&, const Values& v, const Attributes&) {
    const Dim rows = v[2].dim(0), experts = v[2].dim(1), width = v[0].dim(1);
    const Value ordered = index_select(v[0], reshape(v[2], {rows * experts}));
    const Value products =
        mul(reshape(cast(ordered, DType::f32), {rows, experts, width}), reshape(v[1], {rows, experts, 1}));
    return Values{cast(reshape(sum(products, 1), {rows, width}), v[0].dtype())};
  });
  op.rows_of("positions").gathers("x", "positions");
  op.sample({{"x", {27, 40}},
             {"topk_weights", {9, 3}, DType::f32, Fill::positive},
             {"positions", {9, 3}, DType::i32, Fill::indices, 27}});
  op.sample({{"x", {10, 64}},
             {"topk_weights", {1, 8}, DType::f32, Fill::positive},
             {"positions", {1, 8}, DType::i64, Fill::indices, 10}});
}
